import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { now } from '../api/clock';
import type { Sale } from '@seckill/client/types';
import { t } from '../i18n/text';
import { Icon } from '../ui/icons';
import { notify, toast } from '../ui/toast';

const BEFORE_MS = 60_000;
/** Longest delay of a timer, in ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** Sales with a reminder, while the tab is open, on any page. */
const wanted = signal<ReadonlySet<string>>(new Set());

/** The timer of each. */
const timers = new Map<string, ReturnType<typeof setTimeout>>();

function want(id: string, on: boolean): void {
  const next = new Set(wanted.peek());
  if (on) next.add(id);
  else next.delete(id);
  wanted.value = next;
  if (!on) clearTimeout(timers.get(id));
}

/** Sets the timer of a sale again when its opening moved. */
function arm(sale: Pick<Sale, 'id' | 'title' | 'startsAt'>): void {
  clearTimeout(timers.get(sale.id));
  const wait = Date.parse(sale.startsAt) - BEFORE_MS - now();
  const ring = (): void => {
    want(sale.id, false);
    notify(t('wait.reminder', { title: sale.title }));
  };
  if (wait > LONGEST_MS) timers.set(sale.id, setTimeout(() => arm(sale), LONGEST_MS));
  else if (wait >= 0) timers.set(sale.id, setTimeout(ring, wait));
  else want(sale.id, false);
}

/** The switch for a reminder one minute before the opening. */
export function Remind({ sale }: { sale: Pick<Sale, 'id' | 'title' | 'startsAt'> }) {
  const on = wanted.value.has(sale.id);
  useEffect(() => {
    if (on) arm(sale);
  }, [on, sale.startsAt]);
  if (Date.parse(sale.startsAt) - BEFORE_MS < now()) return null;
  const toggle = async (): Promise<void> => {
    if (!on && 'Notification' in globalThis && (await Notification.requestPermission()) === 'denied') {
      toast(t('wait.remindBlocked'));
    }
    want(sale.id, !on);
  };
  return (
    <button class="btn grow" aria-pressed={on} onClick={() => void toggle()}>
      <Icon name={on ? 'check' : 'bell'} />
      {on ? t('wait.reminding') : t('wait.remind')}
    </button>
  );
}
