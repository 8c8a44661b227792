'use client';
/** Hooks for React 18 and later. */
import { useEffect, useState } from 'react';
import type { Client } from './client.ts';
import { Drop, type DropState } from './drop.ts';
import type { Sale } from './types.ts';

/** What `useDrop` returns: the state, and `drop` with the actions; both null until the page is in a browser. */
export type DropHook = { drop: Drop; state: DropState } | { drop: null; state: null };

/** A sale by its id or slug with its user: what to show, and the actions of a purchase. */
export function useDrop(client: Client, sale: string): DropHook {
  const [held, hold] = useState<DropHook>({ drop: null, state: null });
  useEffect(() => {
    const drop = new Drop(client, sale);
    const stop = drop.state.subscribe((state) => hold({ drop, state }));
    return () => {
      stop();
      drop.close();
    };
  }, [client, sale]);
  return held;
}

/** A sale by its id or slug, kept up to date; null until it is read. */
export function useSale(client: Client, sale: string): Sale | null {
  return useDrop(client, sale).state?.sale ?? null;
}
