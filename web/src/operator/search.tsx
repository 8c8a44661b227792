import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useLocation, useSearch } from 'wouter-preact';
import { bounded } from '../forms/bounded';

/** A filter of a page, kept in the URL. */
export function useQuery(name: string): [string, (value: string) => void] {
  const query = new URLSearchParams(useSearch());
  const [where, go] = useLocation();
  const set = (value: string): void => {
    const next = new URLSearchParams(location.search);
    if (value) next.set(name, value);
    else next.delete(name);
    go(next.size ? `${where}?${next}` : where, { replace: true });
  };
  return [query.get(name) ?? '', set];
}

/** A search field that searches on submit. */
export function Search(props: { label: string; text: string; found: (text: string) => void; shortest?: number }) {
  const { label, text, found, shortest = 0 } = props;
  const draft = useSignal(text);
  useEffect(() => void (draft.value = text), [text]);
  return (
    <form
      role="search"
      class="w-full max-w-full sm:w-80"
      onSubmit={(event) => {
        event.preventDefault();
        found(draft.value.trim());
      }}
    >
      <input
        type="search"
        class="field"
        aria-label={label}
        placeholder={label}
        ref={bounded({ least: shortest, most: 254 })}
        value={draft.value}
        onInput={(event) => (draft.value = event.currentTarget.value)}
      />
    </form>
  );
}
