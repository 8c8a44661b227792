/** The review of an order before its payment: what was seen, until when, and the answer of the buyer. */
import { useSignal } from '@preact/signals';
import { toFault } from '@seckill/client/fault';
import type { Order } from '@seckill/client/types';
import { request } from '../api/client';
import { orders } from '../api/stores';
import { AnswerReview } from '../documents/answer-review';
import { bounded } from '../forms/bounded';
import { lang } from '../i18n/lang';
import { explain, faultText, fill, moment, type Values } from '../i18n/text';

const en = {
  title: 'Check before payment',
  until: 'The shop decides by {at}. Without a decision you can pay from then on. Your units stay reserved.',
  how: 'You can explain it to the shop once, for example that you share a household.',
  answer: 'Your explanation',
  send: 'Send explanation',
  released: 'The shop has checked this order. You can pay now.',
};

const zh: typeof en = {
  title: '付款前核实',
  until: '商家最迟于 {at} 处理；届时未处理，您即可付款。商品为您保留。',
  how: '您可以向商家说明一次情况，例如与他人同住。',
  answer: '您的说明',
  send: '提交说明',
  released: '商家已核实该订单，您可以付款了。',
};

const rt = (key: keyof typeof en, values: Values = {}): string => fill({ en, zh }[lang.value][key], values);

/** Most characters of an answer. */
const MOST = 500;

/** The panel of an order that is or was under review and is not paid; nothing for others. */
export function OrderReview({ order }: { order: Order }) {
  const { review, status } = order;
  if (!review || status !== 'PENDING_PAYMENT') return null;
  const { held, text, until, answer } = review;
  return (
    <section class="note grid gap-3 print:hidden" aria-label={rt('title')}>
      {held && <h2 class="font-semibold">{rt('title')}</h2>}
      <div role="status" class="grid gap-1">
        <p key={String(held)}>{held ? text : rt('released')}</p>
        {held && <p class="text-sm text-soft">{rt('until', { at: moment(until) })}</p>}
      </div>
      {answer !== null && (
        <div>
          <h3 class="text-sm text-soft">{rt('answer')}</h3>
          <p class="break-words whitespace-pre-line">
            <bdi>{answer}</bdi>
          </p>
        </div>
      )}
      {held && answer === null && <Answer id={order.id} />}
    </section>
  );
}

/** Asks for the answer. What was typed is kept when the request fails. */
function Answer({ id }: { id: string }) {
  const sending = useSignal(false);
  const why = useSignal<(() => string) | null>(null); // a function, so that a change of the language applies
  const send = async (text: string): Promise<void> => {
    if (sending.peek() || !text) return;
    sending.value = true;
    try {
      const { answerReview } = await request(AnswerReview, { input: { orderId: id, text } });
      const failure = answerReview?.userErrors[0];
      why.value = failure ? () => explain(failure) : null;
      if (answerReview?.order) orders.put(id, answerReview.order);
    } catch (thrown) {
      const fault = toFault(thrown);
      why.value = () => faultText(fault);
    } finally {
      sending.value = false;
    }
  };
  return (
    <form
      class="grid gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        void send(String(new FormData(event.currentTarget).get('answer')).trim());
      }}
    >
      <label class="grid gap-1.5 font-medium">
        {rt('answer')}
        <span class="text-sm font-normal text-soft">{rt('how')}</span>
        <textarea name="answer" class="field font-normal" rows={3} ref={bounded({ most: MOST })} required />
      </label>
      {why.value && (
        <p class="font-medium text-warn" role="alert">
          {why.value()}
        </p>
      )}
      <button class="btn btn-main justify-self-start" aria-disabled={sending.value}>
        {sending.value && <span class="spin" />}
        {rt('send')}
      </button>
    </form>
  );
}
