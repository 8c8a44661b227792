import type { ResultOf } from '@seckill/client/operation';
import { request } from '../api/client';
import { isolate } from '../i18n/text';
import { type AddressParts, MyAddresses } from '../documents/addresses';

/** An entry of an address book. */
export type Address = ResultOf<typeof AddressParts>;
/** A recipient: name, phone number and postal address. */
export type Recipient = Address['recipient'];

/** The address on one line, in the order of its country. */
export function addressLine(recipient: Recipient): string {
  const [country, region, city, street, postalCode] = (['country', 'region', 'city', 'street', 'postalCode'] as const).map((field) => isolate(recipient[field] ?? ''));
  if (country === 'CN') return [region, city, street, postalCode].filter(Boolean).join(' ');
  return [street, [postalCode, city].filter(Boolean).join(' '), region, country].filter(Boolean).join(', ');
}

/** Reads the address book; `null` for a user without a session. */
export const readAddresses = async (signal?: AbortSignal): Promise<Address[] | null> => (await request(MyAddresses, {}, signal)).myAddresses;
