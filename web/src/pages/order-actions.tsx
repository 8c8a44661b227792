/** The actions of an order, as far as the server allows them. */
import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useLocation, useSearch } from 'wouter-preact';
import { orders } from '../api/stores';
import { toFault } from '@seckill/client/fault';
import { client, request } from '../api/client';
import { tabStore } from '../api/storage';
import type { Order, Payment } from '@seckill/client/types';
import { cancelOrder, payAgain, payOrder, type OrderPayload } from '@seckill/client/order';
import { RequestRefund } from '../documents/payment';
import { faultText, digits, explain, money, t } from '../i18n/text';
import { actionKey, clearActionKey } from '@seckill/client/pending';
import { useLeft } from '../ui/countdown';
import { Dialog } from '../ui/dialog';
import { usableOptions, PayOptions } from './pay-options';
import { Qr } from './qr';
import { RefundDialog } from './refund-dialog';

/** Payments begun in this tab, by order id. */
const payments = signal<Record<string, Payment>>({});

/** The state of the actions. */
type State =
  | { state: 'idle'; why: string | null }
  | { state: 'asking'; act: 'CANCEL' | 'REFUND' }
  | { state: 'sending'; act: 'PAY' | 'CANCEL' | 'REFUND' };

/** Hides the payment of an order. */
function forget(order: Order): void {
  const { [order.id]: _, ...others } = payments.peek();
  payments.value = others;
}

/** Whether this is a phone by its width: it cannot scan a code that it shows. */
const isPhone = (): boolean => matchMedia('(max-width: 39.99rem)').matches;

/** Shows a payment that was begun; opens the provider's page at once on a phone, and for a REDIRECT option. */
async function begin(order: Order, payload: Promise<OrderPayload | null>): Promise<OrderPayload | null> {
  const begun = await payload;
  const payment = begun?.payment;
  if (payment?.status === 'PENDING') {
    payments.value = { ...payments.peek(), [order.id]: payment };
    if (payment.redirectUrl && (payment.option.kind === 'REDIRECT' || isPhone())) location.assign(payment.redirectUrl);
  }
  return begun;
}

/** Opens the card payment page for an EMBEDDED option, by a full page load: its Content-Security-Policy differs. Returns whether it did. */
function openForm(order: Order, option: string): boolean {
  const embedded = order.paymentOptions.find(({ id }) => id === option)?.kind === 'EMBEDDED';
  if (embedded) location.assign(`/orders/${order.id}/pay`);
  return embedded;
}

const pay = async (order: Order, option: string): Promise<OrderPayload | null> =>
  openForm(order, option) ? null : begin(order, payOrder(client, order.id, option));

/** Begins another payment after a declined one, whose link is no longer shown. */
async function payAnother(order: Order, option: string): Promise<OrderPayload | null> {
  forget(order);
  return openForm(order, option) ? null : begin(order, payAgain(client, order.id, option));
}

async function refund(order: Order, quantity: number, reason: string): Promise<OrderPayload | null> {
  const act = `refund of ${quantity}`; // a key is of one quantity
  const idempotencyKey = actionKey(tabStore, act, order.id);
  const input = { orderId: order.id, quantity, reason, idempotencyKey };
  const { requestRefund } = await request(RequestRefund, { input });
  clearActionKey(tabStore, act, order.id, idempotencyKey);
  return requestRefund;
}

const cancel = (order: Order): Promise<OrderPayload | null> => cancelOrder(client, order.id);

/** The buttons of an order and what they open. */
export function OrderActions({ order }: { order: Order }) {
  const state = useSignal<State>({ state: 'idle', why: null });
  const reason = useSignal(''); // kept when the request fails
  const can = (act: 'PAY' | 'CANCEL' | 'REFUND'): boolean => order.availableActions?.includes(act) ?? false;
  const last = can('PAY') ? order.payments?.[0] : undefined;
  const declined = last?.failure ? last.id : null;
  const why = last?.failureText ?? t('error.PAYMENT_DECLINED');
  const begun = can('PAY') ? payments.value[order.id] : undefined;
  const payment = begun?.id === declined ? undefined : begun;
  const sending = state.value.state === 'sending';
  const shown = usableOptions(order.paymentOptions ?? []);
  const options = shown.filter(({ unavailableReason }) => !unavailableReason);
  const chosen = useSignal<string | null>(null);
  const option = (options.find(({ id }) => id === chosen.value) ?? options[0])?.id;

  const run = async (act: 'PAY' | 'CANCEL' | 'REFUND', send: () => Promise<OrderPayload | null>): Promise<void> => {
    if (state.peek().state === 'sending') return;
    state.value = { state: 'sending', act };
    try {
      const payload = await send();
      if (payload?.order) orders.put(payload.order.id, payload.order);
      const failure = payload?.userErrors[0];
      state.value = { state: 'idle', why: failure ? explain(failure) : null };
    } catch (thrown) {
      state.value = { state: 'idle', why: `${faultText(toFault(thrown))} ${t('fault.unsure')}` };
    }
  };
  const [where, go] = useLocation();
  const search = useSearch();
  const start = search === 'pay' && can('PAY') && !payment && options.length === 1;
  useEffect(() => {
    if (!start) return;
    go(where, { replace: true }); // a reload or the way back does not start it again
    void run('PAY', () => pay(order, options[0]!.id));
  }, [start]);
  const close = (): void => void (state.value = { state: 'idle', why: null });
  const ask = (act: 'CANCEL' | 'REFUND'): void => {
    if (!sending) state.value = { state: 'asking', act }; // the response of a running request would close the dialog
  };
  const asking = state.value.state === 'asking' ? state.value.act : null;
  const idle = !order.availableActions?.length && state.value.state === 'idle' && !state.value.why;
  if (idle) return null;

  return (
    <div class="grid gap-3">
      {search === 'paid' && can('PAY') && !declined && (
        <p class="note flex items-center gap-2" role="status">
          <span class="spin" /> {t('order.confirming')}
        </p>
      )}
      {payment && (
        <PayHere
          payment={payment}
          again={() => void run('PAY', () => payAnother(order, payment.option.id))}
          other={options.length > 1 ? () => forget(order) : null}
        />
      )}
      {last?.failureText && !declined && (
        <p class="note font-medium" role="alert">
          {last.failureText}
        </p>
      )}
      {declined && !payment && (
        <p class="note font-medium" role="alert">
          {why} {t('order.declined')}
        </p>
      )}
      {can('PAY') && !payment && option && <PayOptions options={shown} chosen={option} choose={(id) => (chosen.value = id)} />}
      {can('PAY') && !payment && !option && <p class="note">{shown[0]?.unavailableReason ?? t('order.payNone')}</p>}
      <div class="flex flex-wrap gap-3">
        {can('PAY') && !payment && option && (
          <button class="btn btn-main btn-big" aria-disabled={sending} onClick={() => void run('PAY', () => (declined ? payAnother(order, option) : pay(order, option)))}>
            {sending && <span class="spin" />}
            <span>
              {t(declined ? 'order.payRetry' : 'button.pay', { amount: money(order.total) })}
              {order.paymentDeadline && <TimeLeft until={Date.parse(order.paymentDeadline)} />}
            </span>
          </button>
        )}
        {can('CANCEL') && (
          <button class="link min-h-11 text-sm" aria-disabled={sending} onClick={() => ask('CANCEL')}>
            {t('order.cancel')}
          </button>
        )}
        {can('REFUND') && (
          <button class="link min-h-11 text-sm" aria-disabled={sending} onClick={() => ask('REFUND')}>
            {t('order.refund')}
          </button>
        )}
      </div>
      {state.value.state === 'idle' && state.value.why && (
        <p class="note font-medium" role="alert">
          {state.value.why}
        </p>
      )}
      {asking === 'CANCEL' && (
        <Dialog title={t('order.cancel')} close={close}>
          <p class="mb-4">{t('order.cancelSure')}</p>
          <div class="flex flex-wrap gap-3">
            <button class="btn btn-main" onClick={() => void run('CANCEL', () => cancel(order))}>
              {t('order.cancelYes')}
            </button>
            <button class="btn" onClick={close}>
              {t('order.keep')}
            </button>
          </div>
        </Dialog>
      )}
      {asking === 'REFUND' && (
        <RefundDialog order={order} reason={reason} send={(units, words) => void run('REFUND', () => refund(order, units, words))} close={close} />
      )}
    </div>
  );
}

/** The time left to pay, below the words of the button. */
function TimeLeft({ until }: { until: number }) {
  return (
    <span class="notranslate block text-sm font-medium tabular-nums" aria-hidden="true">
      {t('order.payLeft', { time: digits(useLeft(until), 'down') })}
    </span>
  );
}

/** How to pay: a code to scan and a page to open; on a phone the page, and the code for another device. */
function PayHere({ payment, again, other }: { payment: Payment; again: () => void; other: (() => void) | null }) {
  const here = payment.redirectUrl !== null && isPhone();
  const page = payment.redirectUrl && (
    <a class={`btn btn-main ${here ? 'btn-big' : ''}`} data-next href={payment.redirectUrl} target={here || payment.option.kind === 'REDIRECT' ? undefined : '_blank'} rel="noopener">
      {t('order.payOpen')}
    </a>
  );
  const code = payment.qrCode && <Qr text={payment.qrCode} label={t('order.payQr')} />;
  return (
    <div class="note grid justify-items-center gap-3 py-5 text-center">
      <p class="numeral text-2xl">{money(payment.amount)}</p>
      {here && page}
      {here && code && (
        <details class="grid w-full justify-items-center">
          <summary class="link min-h-11 py-2 text-sm">{t('order.payElsewhere')}</summary>
          <div class="mt-2 grid justify-items-center">{code}</div>
        </details>
      )}
      {!here && code && (
        <>
          <p class="font-medium">{t('order.payQr')}</p>
          {code}
        </>
      )}
      {!here && page}
      <p class="flex items-center gap-2 text-soft" role="status">
        <span class="spin" /> {t('order.payWaiting')}
      </p>
      <button class="link text-sm" onClick={again}>
        {t('order.payAgain')}
      </button>
      {other && (
        <button class="link text-sm" onClick={other}>
          {t('order.payOther')}
        </button>
      )}
    </div>
  );
}
