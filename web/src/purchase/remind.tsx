import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { now } from '../api/clock';
import type { Sale } from '../api/types';
import { t } from '../i18n/text';
import { Icon } from '../ui/icons';
import { toast } from '../ui/toast';

const BEFORE_MS = 60_000;
/** Sales to be reminded of, while the tab is open. */
const wanted = signal<ReadonlySet<string>>(new Set());

/** Shows a notification of the system, if the person allowed it. */
export function notify(text: string): void {
  if ('Notification' in globalThis && Notification.permission === 'granted') new Notification(text);
  else toast(text);
}

/** The switch for a reminder one minute before the opening. */
export function Remind({ sale }: { sale: Sale }) {
  const on = wanted.value.has(sale.id);
  const at = Date.parse(sale.startsAt) - BEFORE_MS;
  useEffect(() => {
    const wait = at - now();
    if (!on || wait < 0 || wait > 2 ** 31 - 1) return;
    const timer = setTimeout(() => notify(t('wait.reminder', { title: sale.title })), wait);
    return () => clearTimeout(timer);
  }, [on, at]);
  if (at < now()) return null;
  const toggle = async (): Promise<void> => {
    if (!on && 'Notification' in globalThis && (await Notification.requestPermission()) === 'denied') {
      toast(t('wait.remindBlocked'));
    }
    const next = new Set(wanted.value);
    if (on) next.delete(sale.id);
    else next.add(sale.id);
    wanted.value = next;
  };
  return (
    <button class="btn w-full" aria-pressed={on} onClick={() => void toggle()}>
      <Icon name={on ? 'check' : 'bell'} />
      {on ? t('wait.reminding') : t('wait.remind')}
    </button>
  );
}
