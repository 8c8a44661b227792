/** The fields of an address, for the address book and for the correction of an order. */
import { Field, useFields, type Fields } from '../forms/fields';
import { addressRules, trimmed } from '../forms/rules';
import { t } from '../i18n/text';
import type { Recipient } from './address-book';

type Name = keyof typeof addressRules;

/** The fields in their order, with what browsers fill in. */
const fields = [
  { name: 'name', autocomplete: 'name', required: true },
  { name: 'phone', autocomplete: 'tel', required: true },
  { name: 'country', autocomplete: 'country', required: true },
  { name: 'region', autocomplete: 'address-level1', required: false },
  { name: 'city', autocomplete: 'address-level2', required: true },
  { name: 'street', autocomplete: 'street-address', required: true },
  { name: 'postalCode', autocomplete: 'postal-code', required: false },
] as const satisfies readonly { name: Name; autocomplete: string; required: boolean }[];

/** The form of an address. */
export type AddressForm = Fields<Name>;

/** A form that begins with the values of an address. */
export function useAddress(recipient: Partial<Recipient>): AddressForm {
  const first = Object.fromEntries(fields.map(({ name }) => [name, recipient[name] ?? ''])) as Record<Name, string>;
  return useFields<Name>(first, addressRules);
}

/** The values of the form as the API takes them. */
export function addressOf(form: AddressForm) {
  const of = form.values();
  return {
    name: trimmed(of.name),
    phone: trimmed(of.phone),
    country: trimmed(of.country).toUpperCase(),
    region: trimmed(of.region) || null,
    city: trimmed(of.city),
    street: trimmed(of.street),
    postalCode: trimmed(of.postalCode) || null,
  };
}

/** The inputs. */
export function AddressFields({ form }: { form: AddressForm }) {
  return (
    <>
      {fields.map(({ name, autocomplete, required }) => (
        <Field key={name} form={form} name={name} label={t(`address.${name}`)} class={name === 'street' ? 'sm:col-span-2' : ''}>
          {(bound) => <input {...bound} autocomplete={autocomplete as 'name'} required={required} />}
        </Field>
      ))}
    </>
  );
}
