/**
 * Storage of the browser. Where it is forbidden, even reading throws; it may also
 * be full, or missing as in Node. Then values are kept in memory until the page is left.
 */
/** What is kept across reloads. */
export type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> & { names(): string[] };

/** A storage that falls back to memory. */
export function kept(of: () => Storage): Kept {
  const own = new Map<string, string>();
  const orElse = <T>(use: (storage: Storage) => T, other: T): T => {
    try {
      return use(of());
    } catch {
      return other;
    }
  };
  return {
    getItem: (name) => own.get(name) ?? orElse((storage) => storage.getItem(name), null),
    setItem: (name, value) => {
      if (orElse((storage) => (storage.setItem(name, value), true), false)) own.delete(name);
      else own.set(name, value);
    },
    removeItem: (name) => {
      own.delete(name);
      orElse((storage) => storage.removeItem(name), undefined);
    },
    names: () => [...new Set([...own.keys(), ...orElse<string[]>(Object.keys, [])])],
  };
}
