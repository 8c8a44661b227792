/** The correction of the address that an order goes to. */
import { useSignal } from '@preact/signals';
import { toFault } from '@seckill/client/fault';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { Order } from '@seckill/client/types';
import { CanCorrect, CorrectRecipient } from '../documents/addresses';
import { Field, useFields } from '../forms/fields';
import { reason as reasonBounds, within } from '../forms/rules';
import { faultText, explain, t } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { AddressFields, addressOf, useAddress } from './address-form';

interface Props {
  id: string;
  /** Revision of the order; when it changes, the permission to correct the address is read again. */
  revision: number;
  recipient: NonNullable<Order['recipient']>;
  corrected: (order: Order) => void;
  /** Whether a reason is asked for: from staff. */
  reason?: boolean;
}

/** A button with its form, shown if the user may correct the address. */
export function Correction({ id, revision, ...rest }: Props) {
  const { page } = useLoad(`can-correct ${id} ${revision}`, async (signal) => (await request(CanCorrect, { id }, signal)).order);
  const open = useSignal(false);
  if (page.value.state !== 'ready' || !page.value.data.canCorrectRecipient) return null;
  return (
    <>
      <button class="link justify-self-start print:hidden" onClick={() => (open.value = true)}>
        {t('ship.correct')}
      </button>
      {open.value && (
        <Dialog title={t('ship.correct')} close={() => (open.value = false)}>
          <Edit id={id} {...rest} close={() => (open.value = false)} />
        </Dialog>
      )}
    </>
  );
}

function Edit({ id, recipient, corrected, reason, close }: Omit<Props, 'revision'> & { close: () => void }) {
  const why = useSignal<(() => string) | null>(null);
  const form = useAddress(recipient);
  const staff = useFields({ reason: '' }, { reason: reason ? within(reasonBounds) : () => null });
  const send = async (): Promise<void> => {
    // The address is checked last: its first faulty field is above the reason and gets the focus.
    if ([staff.ready(), form.ready()].includes(false)) return;
    why.value = null;
    try {
      const input = { ...addressOf(form), orderId: id, reason: staff.values().reason || null };
      const { correctRecipient } = await request(CorrectRecipient, { input });
      const failures = correctRecipient?.userErrors ?? [];
      const [other] = form.refuse(staff.refuse(failures));
      why.value = other ? () => explain(other) : null;
      if (correctRecipient?.order) corrected(correctRecipient.order);
      if (!failures.length) close();
    } catch (thrown) {
      why.value = () => faultText(toFault(thrown));
    }
  };
  return (
    <form
      class="grid gap-3 sm:grid-cols-2"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {!reason && <p class="text-soft sm:col-span-2">{t('ship.correctHow')}</p>}
      <AddressFields form={form} />
      {reason && (
        <Field form={staff} name="reason" label={t('ship.reason')} class="sm:col-span-2">
          {(bound) => <input {...bound} required />}
        </Field>
      )}
      {why.value && (
        <p class="font-medium text-warn sm:col-span-2" role="alert">
          {why.value()}
        </p>
      )}
      <button class="btn btn-main justify-self-start">{t('address.save')}</button>
    </form>
  );
}
