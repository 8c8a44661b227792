/** Types of the part of Stripe.js that the shop uses: https://docs.stripe.com/js. */

interface StripeElements {
  create(type: 'payment'): { mount(place: HTMLElement): void; on(event: 'ready' | 'loaderror', handle: () => void): void };
}

interface Confirmation {
  error?: { message?: string };
}

interface StripeJs {
  elements(options: { clientSecret: string; appearance: { theme: 'stripe' | 'night' } }): StripeElements;
  confirmSetup(options: { elements: StripeElements; confirmParams: { return_url: string }; redirect: 'if_required' }): Promise<Confirmation>;
  confirmPayment(options: { elements: StripeElements; confirmParams: { return_url: string }; redirect: 'if_required' }): Promise<Confirmation>;
}

declare global {
  interface Window {
    Stripe?: (key: string, options: { locale: string }) => StripeJs;
  }
}

/** A mounted form. */
export interface Form {
  /** Confirms the payment. If the bank requires authentication (3-D Secure), the browser goes to the bank's page and then to `back`. */
  confirm(back: string): Promise<Confirmation>;
}

export interface Options {
  clientSecret: string;
  publishableKey: string;
  scriptUrl: string;
  locale: string;
  dark: boolean;
}

function load(src: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = src;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error(`${src} did not load`));
    document.head.append(script);
  });
}

/** Loads Stripe.js and mounts the form for a payment. */
export async function elements({ clientSecret, publishableKey, scriptUrl, locale, dark }: Options, place: HTMLElement): Promise<Form> {
  if (!window.Stripe) await load(scriptUrl);
  const stripe = window.Stripe!(publishableKey, { locale });
  const group = stripe.elements({ clientSecret, appearance: { theme: dark ? 'night' : 'stripe' } });
  const payment = group.create('payment');
  const ready = new Promise<void>((resolve, reject) => {
    payment.on('ready', resolve);
    payment.on('loaderror', () => reject(new Error('the form did not load')));
  });
  payment.mount(place);
  await ready;
  const how = clientSecret.startsWith('seti_') ? 'confirmSetup' : 'confirmPayment';
  return { confirm: (back) => stripe[how]({ elements: group, confirmParams: { return_url: back }, redirect: 'if_required' }) };
}
