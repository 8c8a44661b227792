import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import { now } from '../api/clock';
import { useLoad } from '../api/load';
import { currentUser } from '../api/session';
import type { Sale } from '@seckill/client/types';
import { ForgetReminder, RemindMe, SaleReminder } from '../documents/notices';
import { faultText, explain, moment, span, t } from '../i18n/text';
import { Icon } from '../ui/icons';
import { notify, toast } from '../ui/toast';
import { pushState, subscribe } from './push';

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

/** Sets or replaces the timer of a sale; removes the reminder if its time has passed. */
function arm(sale: Opening): void {
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

type Opening = Pick<Sale, 'id' | 'title' | 'startsAt'>;

/** The switch for a reminder: by the channels of the account where one reaches the user, else by this tab. */
export function Remind({ sale }: { sale: Opening }) {
  return currentUser.value ? <ByAccount sale={sale} /> : <ByTab sale={sale} />;
}

/** The reminder that the server sends. Offered only if a channel reaches the user and its time has not passed. */
function ByAccount({ sale }: { sale: Opening }) {
  const { page, reload } = useLoad(`reminder:${sale.id}:${sale.startsAt}`, (signal) => request(SaleReminder, { id: sale.id }, signal));
  const busy = useSignal(false);
  if (page.value.state === 'loading') {
    return (
      // As wide as the button that most often follows, so that its neighbour does not move.
      <button class="btn grow" disabled>
        <Icon name="bell" />
        {t('wait.remind')}
      </button>
    );
  }
  if (page.value.state !== 'ready') return <ByTab sale={sale} />;
  const { sale: found, viewer, serverInfo } = page.value.data;
  const late = (sentAt: string): boolean => Date.parse(sentAt) < now();
  const reminder = found?.viewer?.reminder;
  const channel = reminder?.channels.includes('MAIL') ? 'MAIL' : reminder?.channels[0];
  if (!reminder || !channel || late(reminder.sentAt)) {
    const key = reminder && !late(reminder.sentAt) && !viewer?.noticeSettings?.reaching.includes('PUSH') && serverInfo?.pushKey;
    return (
      <>
        <ByTab sale={sale} />
        {key && <ByDevice sale={sale} pushKey={key} changed={reload} />}
        {serverInfo?.mail && viewer?.contactVerified === false && (
          <Link class="link basis-full text-sm" href="/account">
            {t('remind.verify')}
          </Link>
        )}
      </>
    );
  }
  const toggle = async (): Promise<void> => {
    busy.value = true;
    try {
      const input = { saleId: sale.id };
      const answer = reminder.set ? (await request(ForgetReminder, { input })).forgetReminder : (await request(RemindMe, { input })).remindMe;
      const failure = answer?.userErrors[0];
      if (failure) toast(explain(failure));
    } catch (thrown) {
      toast(faultText(toFault(thrown)));
    }
    await reload();
    busy.value = false;
  };
  const before = span((Date.parse(sale.startsAt) - Date.parse(reminder.sentAt)) / 1000);
  return (
    <button class="btn grow" aria-pressed={reminder.set} disabled={busy.value} onClick={() => void toggle()}>
      <Icon name={reminder.set ? 'check' : 'bell'} />
      {reminder.set ? t(`remind.${channel}`, { time: moment(reminder.sentAt) }) : t('remind.off', { time: before })}
    </button>
  );
}

/** Offers the reminder on this device where it can show one. */
function ByDevice({ sale, pushKey, changed }: { sale: Opening; pushKey: string; changed: () => Promise<void> }) {
  const offered = useSignal(false);
  const busy = useSignal(false);
  useEffect(() => {
    void pushState().then(({ state }) => (offered.value = state === 'ready'));
  }, []);
  if (!offered.value) return null;
  const remind = async (): Promise<void> => {
    const result = await subscribe(pushKey);
    if (result.state === 'denied') return toast(t('wait.remindBlocked'));
    if (result.state === 'unreachable') return toast(t('push.unreachable'));
    const failure = result.state === 'refused' ? result.failure : (await request(RemindMe, { input: { saleId: sale.id } })).remindMe?.userErrors[0];
    if (failure) toast(explain(failure));
  };
  const press = async (): Promise<void> => {
    busy.value = true;
    await remind().catch((thrown: unknown) => toast(faultText(toFault(thrown))));
    await changed();
    busy.value = false;
  };
  return (
    <button class="link basis-full text-left text-sm" disabled={busy.value} onClick={() => void press()}>
      {t('push.turnOn')}
    </button>
  );
}

/** The switch for a reminder one minute before the opening, by a tab of the shop. */
export function ByTab({ sale }: { sale: Opening }) {
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
