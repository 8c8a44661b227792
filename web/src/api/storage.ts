/**
 * What the browser keeps for us. It may forbid that, and then even the look at
 * it throws; or it may be full. Then this page remembers by itself, until it is left.
 */
type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> & { names(): string[] };

function kept(of: () => Storage): Kept {
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

/** Kept by the browser for good, for all tabs. */
export const forGood = kept(() => localStorage);
/** Kept for the tab, across reloads. */
export const forTab = kept(() => sessionStorage);
