/** Asks why, and for how many units, an order is to be refunded. */
import { useSignal, type Signal } from '@preact/signals';
import type { Order } from '@seckill/client/types';
import { bounded } from '../forms/bounded';
import { count, money, t, times } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { Select, upTo } from '../ui/select';

interface Props {
  order: Order;
  reason: Signal<string>; // kept when the request fails
  send: (units: number, reason: string) => void;
  close: () => void;
}

/** The dialog. The number of units is asked for where more than one is left. */
export function RefundDialog({ order, reason, send, close }: Props) {
  const left = (order.quantity ?? 1) - (order.refundedQuantity ?? 0);
  const units = useSignal(left);
  const amount = units.value === order.quantity || !order.unitPrice ? order.total : times(order.unitPrice, units.value);
  return (
    <Dialog title={t('order.refund')} close={close}>
      <form
        class="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          const words = reason.value.trim();
          if (words) send(units.value, words);
        }}
      >
        {left > 1 && (
          <label class="grid gap-1.5 font-medium">
            {t('order.refundMany')}
            <Select
              name="units"
              value={String(units.value)}
              change={(value) => (units.value = Number(value))}
              choices={upTo(left, (n) => t('order.refundOf', { n: count(n), of: count(left) }))}
            />
          </label>
        )}
        <label class="grid gap-1.5 font-medium">
          {t('order.refundWhy')}
          <textarea
            class="field font-normal"
            rows={3}
            required
            ref={bounded({ most: 200 })}
            value={reason.value}
            onInput={(event) => (reason.value = event.currentTarget.value)}
          />
        </label>
        <button class="btn btn-main">{t('order.refundSend', { amount: money(amount) })}</button>
      </form>
    </Dialog>
  );
}
