/** What was typed into the form of a new sale or product, kept in the browser until it is created. */
import { useSignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { persistentStore } from '../api/storage';
import { currentUser } from '../api/session';

interface Unsent<T> {
  rows: T[];
  /** Values by the names of their fields; checked boxes as they are sent. */
  fields: [name: string, value: string][];
}

/** What a form creates. */
type Kind = 'sale' | 'product';

const keyOf = (kind: Kind): string => `unsent-${kind}:${currentUser.peek()?.id ?? ''}`;

/** What was kept of the rows; null where nothing was. */
export function unsentRows<T>(): T[] | null {
  try {
    return (JSON.parse(persistentStore.getItem(keyOf('sale')) ?? 'null') as Unsent<T> | null)?.rows ?? null;
  } catch {
    return null;
  }
}

export const forget = (kind: Kind): void => persistentStore.removeItem(keyOf(kind));

/** Keeps the fields of a form with its rows. */
export function keep<T>(kind: Kind, form: HTMLFormElement, rows: T[] = []): void {
  const fields = [...new FormData(form)].filter((field): field is [string, string] => typeof field[1] === 'string');
  persistentStore.setItem(keyOf(kind), JSON.stringify({ rows, fields } satisfies Unsent<T>));
}

/** Fills a form with what was kept, once, before it is painted. Returns whether there was anything. */
export function useUnsent(kind: Kind, form: () => HTMLFormElement | null | undefined, wanted: boolean): boolean {
  const restored = useSignal(false);
  useLayoutEffect(() => {
    const text = wanted && persistentStore.getItem(keyOf(kind));
    const found = form();
    if (!text || !found) return;
    const { fields } = JSON.parse(text) as Unsent<unknown>;
    const kept = new Map(fields);
    for (const field of found.elements) {
      if (field instanceof HTMLInputElement && field.type === 'checkbox') field.checked = kept.has(field.name);
      else if ((field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) && kept.has(field.name)) {
        field.value = kept.get(field.name)!;
        field.dispatchEvent(new Event('input')); // does not bubble: only what belongs to the field follows
      }
    }
    restored.value = true;
  }, []);
  return restored.value;
}
