/** The address book of the signed-in user. */
import { useSignal } from '@preact/signals';
import { useLoad } from '../api/load';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import { RemoveAddress, SaveAddress } from '../documents/addresses';
import { faultText, explain, t } from '../i18n/text';
import { lang } from '../i18n/lang';
import { FaultMessage, Loading } from '../ui/bits';
import { addressLine, readAddresses, type Address, type Recipient } from './address-book';
import { AddressFields, addressOf, useAddress } from './address-form';

/** Most addresses that a user may keep. */
const MOST = 5;

/** The section of the account page. */
export function Addresses() {
  const { page, reload } = useLoad('addresses', readAddresses);
  const edited = useSignal<Address | 'new' | null>(null);
  if (page.value.state === 'failed') return <FaultMessage fault={page.value.fault} again={reload} />;
  if (page.value.state !== 'ready') return <Loading />;
  const list = page.value.data;
  const saved = async (): Promise<void> => {
    edited.value = null;
    await reload();
  };
  return (
    <section class="card grid gap-3 p-5" id="addresses">
      <h2 class="head">{t('address.title')}</h2>
      <p class="text-soft">{t('address.hint')}</p>
      {list.length > 0 && (
        <ul class="grid gap-3">
          {list.map((address) => (
            <Entry key={address.id} address={address} edit={() => (edited.value = address)} changed={saved} />
          ))}
        </ul>
      )}
      {edited.value && <Edit key={edited.value === 'new' ? '' : edited.value.id} address={edited.value === 'new' ? null : edited.value} saved={saved} />}
      {!edited.value && list.length < MOST && (
        <button class="btn justify-self-start" onClick={() => (edited.value = 'new')}>
          {t('address.add')}
        </button>
      )}
    </section>
  );
}

function Entry({ address, edit, changed }: { address: Address; edit: () => void; changed: () => Promise<void> }) {
  const { recipient } = address;
  const why = useSignal<string | null>(null);
  const act = async (send: () => Promise<void>): Promise<void> => {
    try {
      await send();
      await changed();
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    }
  };
  const prefer = (): Promise<void> =>
    act(async () => void (await request(SaveAddress, { input: { ...inputOf(recipient), addressId: address.id, makeDefault: true } })));
  const remove = (): Promise<void> => act(async () => void (await request(RemoveAddress, { input: { addressId: address.id } })));
  return (
    <li class="note grid gap-1">
      <p class="font-medium">
        <bdi>{recipient.name}</bdi> · {recipient.phone} {address.default && <span class="chip">{t('address.default')}</span>}
      </p>
      <p>{addressLine(recipient)}</p>
      <p class="flex flex-wrap gap-x-4">
        <button class="link" onClick={edit}>
          {t('address.edit')}
        </button>
        {!address.default && (
          <button class="link" onClick={() => void prefer()}>
            {t('address.prefer')}
          </button>
        )}
        <button class="link" onClick={() => void remove()}>
          {t('address.remove')}
        </button>
      </p>
      {why.value && <p role="alert">{why.value}</p>}
    </li>
  );
}

function inputOf({ name, phone, country, region, city, street, postalCode }: Recipient) {
  return { name, phone, country, region, city, street, postalCode };
}

function Edit({ address, saved }: { address: Address | null; saved: () => Promise<void> }) {
  const sending = useSignal(false);
  const why = useSignal<(() => string) | null>(null);
  const form = useAddress(address?.recipient ?? { country: lang.value === 'zh' ? 'CN' : '' });
  const submit = async (): Promise<void> => {
    if (sending.peek() || !form.ready()) return;
    sending.value = true;
    why.value = null;
    try {
      const { saveAddress } = await request(SaveAddress, { input: { ...addressOf(form), ...(address && { addressId: address.id }) } });
      const failures = saveAddress?.userErrors ?? [];
      const [other] = form.refuse(failures);
      why.value = other ? () => explain(other) : null;
      if (!failures.length) await saved();
    } catch (thrown) {
      why.value = () => faultText(toFault(thrown));
    } finally {
      sending.value = false;
    }
  };
  return (
    <form
      class="grid gap-3 sm:grid-cols-2"
      aria-label={t(address ? 'address.edit' : 'address.add')}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <AddressFields form={form} />
      {why.value && (
        <p class="font-medium text-warn sm:col-span-2" role="alert">
          {why.value()}
        </p>
      )}
      <button class="btn btn-main justify-self-start" aria-disabled={sending.value}>
        {sending.value && <span class="spin" />}
        {t('address.save')}
      </button>
    </form>
  );
}
