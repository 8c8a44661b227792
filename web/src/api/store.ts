import { signal, type Signal } from '@preact/signals';

/** A value with the revision of the server. */
export interface Revised {
  revision: number;
}

/**
 * One signal per id with the newest revision that arrived over any
 * transport. It is the only cache of entities.
 */
export class RevisionStore<T extends Revised> {
  readonly #signals = new Map<string, Signal<T | null>>();

  /** The signal of an id; its value is null until something arrives. */
  of(id: string): Signal<T | null> {
    let found = this.#signals.get(id);
    if (!found) this.#signals.set(id, (found = signal<T | null>(null)));
    return found;
  }

  /** Keeps a value unless a newer one is known. Returns the kept one. */
  put(id: string, value: T): T {
    const kept = this.of(id);
    if (!kept.peek() || kept.peek()!.revision <= value.revision) kept.value = value;
    return kept.peek()!;
  }

  /** Removes everything, for when another user signs in. */
  clear(): void {
    for (const kept of this.#signals.values()) kept.value = null;
  }
}
