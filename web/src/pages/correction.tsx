/** The correction of the address that an order goes to. */
import { useSignal } from '@preact/signals';
import { toFault } from '@seckill/client/fault';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { Order } from '@seckill/client/types';
import { CanCorrect, CorrectRecipient } from '../documents/addresses';
import { apologise, explain, t } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { AddressFields, addressOf } from './addresses';

interface Props {
  id: string;
  /** Of the order: with each change, it is asked again whether the address can be corrected. */
  revision: number;
  recipient: NonNullable<Order['recipient']>;
  corrected: (order: Order) => void;
  /** Whether a reason is asked for: from staff. */
  reason?: boolean;
}

/** A button where the caller may correct the address, and its form. */
export function Correction({ id, revision, recipient, corrected, reason }: Props) {
  const { page } = useLoad(`can-correct ${id} ${revision}`, async (signal) => (await request(CanCorrect, { id }, signal)).order);
  const open = useSignal(false);
  const why = useSignal<(() => string) | null>(null);
  if (page.value.state !== 'ready' || !page.value.data.canCorrectRecipient) return null;
  const send = async (form: HTMLFormElement): Promise<void> => {
    const said = new FormData(form).get('reason');
    try {
      const { correctRecipient } = await request(CorrectRecipient, { input: { ...addressOf(form), orderId: id, reason: said ? String(said) : null } });
      const failure = correctRecipient?.userErrors[0];
      why.value = failure ? () => explain(failure) : null;
      if (correctRecipient?.order) corrected(correctRecipient.order);
      if (!failure) open.value = false;
    } catch (thrown) {
      why.value = () => apologise(toFault(thrown));
    }
  };
  return (
    <>
      <button class="link justify-self-start print:hidden" onClick={() => (open.value = true)}>
        {t('ship.correct')}
      </button>
      {open.value && (
        <Dialog title={t('ship.correct')} close={() => (open.value = false)}>
          <form
            class="grid gap-3 sm:grid-cols-2"
            onSubmit={(event) => {
              event.preventDefault();
              void send(event.currentTarget);
            }}
          >
            {!reason && <p class="text-soft sm:col-span-2">{t('ship.correctHow')}</p>}
            <AddressFields recipient={recipient} />
            {reason && (
              <label class="grid gap-1.5 font-medium sm:col-span-2">
                {t('ship.reason')}
                <input name="reason" class="field font-normal" required maxLength={200} />
              </label>
            )}
            {why.value && (
              <p class="font-medium text-warn sm:col-span-2" role="alert">
                {why.value()}
              </p>
            )}
            <button class="btn btn-main justify-self-start">{t('address.save')}</button>
          </form>
        </Dialog>
      )}
    </>
  );
}
