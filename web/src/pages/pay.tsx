/**
 * The card payment page with Stripe's Payment Element. It is entered and left by a full page load, because only its
 * Content-Security-Policy allows Stripe.
 */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { orders } from '../api/stores';
import { client } from '../api/client';
import { toFault } from '@seckill/client/fault';
import { followOrder, payOrder, readOrder } from '@seckill/client/order';
import type { Failure } from '@seckill/client/types';
import { useLoad } from '../api/load';
import { currentUser } from '../api/session';
import { lang } from '../i18n/lang';
import { faultText, digits, explain, money, t } from '../i18n/text';
import { Loading, Title, Unready } from '../ui/bits';
import { useLeft } from '../ui/countdown';
import { useTitle } from '../ui/title';
import { elements, type Form } from './stripe';

/** A payment that can be made on a page of the shop. */
export interface Payable {
  title: string;
  lead?: string;
  /** Text of the button. */
  act: string;
  deadline: string | null;
  embedded: { clientSecret: string; publishableKey: string; scriptUrl: string };
  /** Path of the page that the form leads back to, and the text of a link to it. */
  back: string;
  backText: string;
  /** Query of that page once the card was confirmed. */
  done: string;
}

/** Goes to the order page. */
const leave = (id: string): void => location.replace(`/orders/${id}`);

/** Begins the payment, or returns the one that was begun. An order that cannot be paid here leads back to its page. */
async function begin(id: string, signal: AbortSignal): Promise<Payable | Failure | null> {
  const order = await readOrder(client, id, signal);
  const option = order?.paymentOptions.find(({ kind, unavailableReason }) => kind === 'EMBEDDED' && !unavailableReason)?.id;
  if (!order || !option) return null;
  const payload = await payOrder(client, id, option);
  const payment = payload?.payment;
  if (payment?.status !== 'PENDING' || !payment.embedded) return payload?.userErrors[0] ?? null;
  return {
    title: t('order.payPage', { number: order.number }),
    act: t('button.pay', { amount: money(payment.amount) }),
    deadline: order.paymentDeadline,
    embedded: payment.embedded,
    back: `/orders/${id}`,
    backText: t('order.payBack'),
    done: '?paid',
  };
}

export function PayPage({ id }: { id: string }) {
  const { page, reload } = useLoad(`pay ${id}`, (signal) => (currentUser.peek() ? begin(id, signal) : Promise.resolve(null)));
  useEffect(
    () =>
      currentUser.peek()
        ? followOrder(client, id, (order) => {
            const over = orders.put(id, order).status !== 'PENDING_PAYMENT';
            if (over) leave(id);
            return over;
          })
        : undefined,
    [id, currentUser.value?.id],
  );
  const missing = page.value.state === 'missing';
  useEffect(() => {
    if (missing) leave(id);
  }, [missing]);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} inset />;
  const found = page.value.data;
  if ('embedded' in found) return <Card payable={found} />;
  return <Unpayable failure={found} back={`/orders/${id}`} text={t('order.payBack')} />;
}

/** Why a card cannot be entered. */
export function Unpayable({ failure, back, text }: { failure: Failure; back: string; text: string }) {
  return (
    <div class="page max-w-xl">
      <p class="note font-medium" role="alert">
        {explain(failure)}
      </p>
      <Back to={back} text={text} />
    </div>
  );
}

function Back({ to, text }: { to: string; text: string }) {
  return (
    <a class="link mt-4 inline-block" href={to}>
      {text}
    </a>
  );
}

/** The card form. A declined card can be tried again without leaving. */
export function Card({ payable }: { payable: Payable }) {
  const { back, done, title } = payable;
  const place = useRef<HTMLDivElement>(null);
  const form = useSignal<Form | 'loading' | 'failed'>('loading');
  const sending = useSignal(false);
  const why = useSignal<string | null>(null);
  useTitle(title);
  useEffect(() => {
    elements({ ...payable.embedded, locale: lang.peek(), dark: matchMedia('(prefers-color-scheme: dark)').matches }, place.current!).then(
      (made) => (form.value = made),
      () => (form.value = 'failed'),
    );
  }, []);
  const submit = async (): Promise<void> => {
    const made = form.peek();
    if (sending.peek() || typeof made === 'string') return;
    sending.value = true;
    why.value = null;
    try {
      const { error } = await made.confirm(`${location.origin}${back}${done}`);
      if (!error) return location.replace(`${back}${done}`);
      why.value = error.message ?? t('error.PAYMENT_DECLINED');
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    }
    sending.value = false;
  };
  return (
    <div class="page max-w-xl">
      <Title>{title}</Title>
      {payable.lead && <p class="mt-2 text-soft">{payable.lead}</p>}
      <form
        class="card mt-5 grid gap-4 p-5"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div ref={place} aria-busy={form.value === 'loading'} />
        {form.value === 'loading' && <Loading />}
        {form.value === 'failed' && (
          <p class="font-medium text-warn" role="alert">
            {t('order.payLoad')}
          </p>
        )}
        {why.value && (
          <p class="note font-medium" role="alert">
            {why.value} {t('order.declined')}
          </p>
        )}
        {typeof form.value !== 'string' && (
          <button class="btn btn-main btn-big" aria-disabled={sending.value}>
            {sending.value && <span class="spin" />}
            <span>
              {payable.act}
              {payable.deadline && <Left until={Date.parse(payable.deadline)} />}
            </span>
          </button>
        )}
      </form>
      <Back to={back} text={payable.backText} />
    </div>
  );
}

function Left({ until }: { until: number }) {
  return (
    <span class="notranslate block text-sm font-medium tabular-nums" aria-hidden="true">
      {t('order.payLeft', { time: digits(useLeft(until), 'down') })}
    </span>
  );
}
