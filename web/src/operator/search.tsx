import { useSignal } from '@preact/signals';
import { ot } from './texts';

/** A search field that searches when it is sent. */
export function Search({ found }: { found: (text: string) => void }) {
  const text = useSignal('');
  return (
    <form
      role="search"
      class="w-full sm:w-64"
      onSubmit={(event) => {
        event.preventDefault();
        found(text.value.trim());
      }}
    >
      <input
        type="search"
        class="field"
        aria-label={ot('op.search')}
        placeholder={ot('op.search')}
        maxLength={64}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
    </form>
  );
}
