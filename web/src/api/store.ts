import { signal, type Signal } from '@preact/signals';

/** What the server gives a revision. A lower one than we have is old news. */
export interface Revised {
  revision: number;
}

/**
 * One signal for each id, holding the newest revision that ever arrived, by
 * whatever way it came. It is the whole cache of the shop.
 */
export class RevisionStore<T extends Revised> {
  readonly #signals = new Map<string, Signal<T | null>>();

  /** The signal of an id; its value is null until something arrives. */
  of(id: string): Signal<T | null> {
    let found = this.#signals.get(id);
    if (!found) this.#signals.set(id, (found = signal<T | null>(null)));
    return found;
  }

  /** Keeps a value unless a newer one is there. Returns the one that is kept. */
  put(id: string, value: T): T {
    const kept = this.of(id);
    if (!kept.peek() || kept.peek()!.revision <= value.revision) kept.value = value;
    return kept.peek()!;
  }

  /** Forgets everything, for when another person signs in. */
  clear(): void {
    for (const kept of this.#signals.values()) kept.value = null;
  }
}
