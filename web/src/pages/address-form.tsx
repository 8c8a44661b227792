/** The fields of an address, for the address book and for the correction of an order. */
import { Field, useFields, type Fields } from '../forms/fields';
import { addressRules } from '../forms/rules';
import { line, plain } from '../forms/typed';
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
    name: line(of.name),
    phone: plain(of.phone),
    country: plain(of.country).toUpperCase(),
    region: line(of.region) || null,
    city: line(of.city),
    street: line(of.street),
    postalCode: plain(of.postalCode) || null,
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
