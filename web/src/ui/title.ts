import { effect, signal, useComputed, useSignalEffect } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { now, second } from '../api/clock';
import { digits, isolate } from '../i18n/text';
import { shopName } from './brand';

/** The title counts down only the last part of a wait, in ms. */
const COUNTED_MS = 3_600_000;

/** The title of the page. */
const own = signal('');
/** Prefix of the title of every page while a status needs the user; empty = none. */
export const titlePrefix = signal('');

effect(() => {
  if (own.value) document.title = titlePrefix.value + own.value;
});

/** Sets the title of the window. */
export function useTitle(title: string): void {
  const text = `${isolate(title)} · ${isolate(shopName())}`;
  useEffect(() => {
    own.value = text;
  }, [text]);
}

/** Sets the title of the window and counts down in it to an instant of server time; null = no countdown. */
export function useCountedTitle(title: string, until: number | null): void {
  const left = useComputed(() => (second.value && until ? until - now() : 0));
  useSignalEffect(() => {
    const ahead = left.value > 0 && left.value < COUNTED_MS ? `${digits(left.value)} ` : '';
    own.value = `${ahead}${isolate(title)} · ${isolate(shopName())}`;
  });
}
