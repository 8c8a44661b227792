import { useSignal } from '@preact/signals';

/** A search field that searches when it is sent. */
export function Search({ label, found }: { label: string; found: (text: string) => void }) {
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
        aria-label={label}
        placeholder={label}
        maxLength={64}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
    </form>
  );
}
