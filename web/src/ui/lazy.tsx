import { useSignal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { Fault } from '@seckill/client/fault';
import { FaultMessage, Loading } from './bits';

/** A component that is fetched when it is first shown, and kept. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> & { preload(): Promise<void> } {
  let loaded: ComponentType<P> | null = null;
  const fetch = (): Promise<void> => load().then((component) => void (loaded = component));
  function Lazy(props: P) {
    const state = useSignal<'loading' | 'ready' | 'failed'>(loaded ? 'ready' : 'loading');
    const run = (): void => {
      state.value = 'loading';
      fetch().then(
        () => (state.value = 'ready'),
        () => (state.value = 'failed'),
      );
    };
    useEffect(() => {
      if (loaded) state.value = 'ready'; // it may have loaded since the first render
      else run();
    }, []);
    if (state.value === 'failed') return <FaultMessage fault={new Fault('NETWORK', '')} again={run} />;
    if (state.value === 'loading' || !loaded) return <Loading />;
    const Component = loaded;
    return <Component {...props} />;
  }
  Lazy.preload = () => fetch().catch(() => {});
  return Lazy;
}
