import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** Renders its children in a task of their own after the frame with what surrounds them: for what is below the first screen. */
export function Later({ children }: { children: ComponentChildren }) {
  const shown = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (shown.value = true));
    return () => clearTimeout(timer);
  }, []);
  return shown.value ? <>{children}</> : null;
}
