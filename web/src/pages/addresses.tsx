/** The address book of the signed-in user. */
import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { useLoad } from '../api/load';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { type AddressParts, MyAddresses, RemoveAddress, SaveAddress } from '../documents/addresses';
import { apologise, explain, t } from '../i18n/text';
import { lang } from '../i18n/lang';
import { Broken, Loading } from '../ui/bits';

type Address = ResultOf<typeof AddressParts>;
type Recipient = Address['recipient'];

/** Most addresses that a user may keep. */
const MOST = 5;

/** The address on one line, in the order of its country. */
export function addressLine({ country, region, city, street, postalCode }: Recipient): string {
  if (country === 'CN') return [region, city, street, postalCode].filter(Boolean).join(' ');
  return [street, [postalCode, city].filter(Boolean).join(' '), region, country].filter(Boolean).join(', ');
}

/** Reads the address book; `null` for a user without a session. */
export const readAddresses = async (signal?: AbortSignal): Promise<Address[] | null> => (await request(MyAddresses, {}, signal)).myAddresses;

/** The section of the account page. */
export function Addresses() {
  const { page, reload } = useLoad('addresses', readAddresses);
  const edited = useSignal<Address | 'new' | null>(null);
  if (page.value.state === 'failed') return <Broken fault={page.value.fault} again={reload} />;
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
      why.value = apologise(toFault(thrown));
    }
  };
  const prefer = (): Promise<void> =>
    act(async () => void (await request(SaveAddress, { input: { ...inputOf(recipient), addressId: address.id, makeDefault: true } })));
  const remove = (): Promise<void> => act(async () => void (await request(RemoveAddress, { input: { addressId: address.id } })));
  return (
    <li class="note grid gap-1">
      <p class="font-medium">
        {recipient.name} · {recipient.phone} {address.default && <span class="chip">{t('address.default')}</span>}
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

/** The fields of an address, with what browsers fill in, and their bounds. */
const fields = [
  { name: 'name', autocomplete: 'name', most: 64, required: true },
  { name: 'phone', autocomplete: 'tel', most: 32, required: true },
  { name: 'country', autocomplete: 'country', most: 2, required: true },
  { name: 'region', autocomplete: 'address-level1', most: 64, required: false },
  { name: 'city', autocomplete: 'address-level2', most: 64, required: true },
  { name: 'street', autocomplete: 'street-address', most: 200, required: true },
  { name: 'postalCode', autocomplete: 'postal-code', most: 16, required: false },
] as const;

/** The values of a form with the fields of an address. */
export function addressOf(form: HTMLFormElement) {
  const of = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
  return {
    name: of['name']!,
    phone: of['phone']!,
    country: of['country']!.toUpperCase(),
    region: of['region'] || null,
    city: of['city']!,
    street: of['street']!,
    postalCode: of['postalCode'] || null,
  };
}

/** The fields of an address. */
export function AddressFields({ recipient }: { recipient: Partial<Recipient> }) {
  const id = useId();
  return (
    <>
      {fields.map(({ name, autocomplete, most, required }) => (
        <div key={name} class={`grid content-start gap-1.5 ${name === 'street' ? 'sm:col-span-2' : ''}`}>
          <label for={`${id}-${name}`} class="font-medium">
            {t(`address.${name}`)}
          </label>
          <input
            id={`${id}-${name}`}
            name={name}
            class="field"
            autocomplete={autocomplete as 'name'}
            required={required}
            minLength={name === 'country' ? 2 : undefined}
            maxLength={most}
            defaultValue={recipient[name] ?? ''}
          />
        </div>
      ))}
    </>
  );
}

function Edit({ address, saved }: { address: Address | null; saved: () => Promise<void> }) {
  const sending = useSignal(false);
  const why = useSignal<(() => string) | null>(null);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    if (sending.peek()) return;
    sending.value = true;
    try {
      const { saveAddress } = await request(SaveAddress, { input: { ...addressOf(form), ...(address && { addressId: address.id }) } });
      const failure = saveAddress?.userErrors[0];
      why.value = failure ? () => explain(failure) : null;
      if (!failure) await saved();
    } catch (thrown) {
      why.value = () => apologise(toFault(thrown));
    } finally {
      sending.value = false;
    }
  };
  const usual = { country: lang.value === 'zh' ? 'CN' : '' } as Partial<Recipient>;
  return (
    <form
      class="grid gap-3 sm:grid-cols-2"
      aria-label={t(address ? 'address.edit' : 'address.add')}
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <AddressFields recipient={address?.recipient ?? usual} />
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
