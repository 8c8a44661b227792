import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { backoff } from '@seckill/client/backoff';
import { Fault } from '@seckill/client/fault';
import { onWake } from '../api/wake';
import { FaultMessage, Loading } from './bits';

/** A component that is fetched when it is first shown, and kept. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> & { preload(): Promise<void> } {
  let loaded: ComponentType<P> | null = null;
  const fetch = (): Promise<void> => load().then((component) => void (loaded = component));
  function Lazy(props: P) {
    const state = useSignal<'loading' | 'ready' | 'failed'>(loaded ? 'ready' : 'loading');
    const again = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const run = (tries = 1): void => {
      clearTimeout(again.current);
      if (state.peek() !== 'failed') state.value = 'loading';
      fetch().then(
        () => (state.value = 'ready'),
        () => {
          state.value = 'failed';
          again.current = setTimeout(() => run(tries + 1), backoff(tries));
        },
      );
    };
    useEffect(() => {
      if (loaded) state.value = 'ready'; // it may have loaded since the first render
      else run();
      const quiet = onWake(() => state.peek() === 'failed' && run());
      return () => {
        quiet();
        clearTimeout(again.current);
      };
    }, []);
    if (state.value === 'failed') return <FaultMessage fault={new Fault('NETWORK', '')} again={() => run()} />;
    if (state.value === 'loading' || !loaded) return <Loading />;
    const Component = loaded;
    return <Component {...props} />;
  }
  Lazy.preload = () => fetch().catch(() => {});
  return Lazy;
}
