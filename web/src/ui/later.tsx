import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** Renders its children in a separate task after the first render, for content below the fold. */
export function Deferred({ children }: { children: ComponentChildren }) {
  const shown = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (shown.value = true));
    return () => clearTimeout(timer);
  }, []);
  return shown.value ? <>{children}</> : null;
}
