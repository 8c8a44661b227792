import { useEffect } from 'preact/hooks';
import { now, second } from '../api/clock';
import { digits, t } from '../i18n/text';

/** Longest span that is counted down in the title, in ms. */
const COUNTED_MS = 3_600_000;

/** Sets the title of the window; counts down in it to an instant of server time. */
export function useTitle(title: string, until: number | null = null): void {
  void second.value;
  const left = until === null ? 0 : until - now();
  const text = `${left > 0 && left < COUNTED_MS ? `${digits(left)} ` : ''}${title} · ${t('app.name')}`;
  useEffect(() => {
    document.title = text;
  }, [text]);
}
