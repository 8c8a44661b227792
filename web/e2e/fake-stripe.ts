/**
 * A fake Stripe server: the API calls that the shop uses, a Checkout page, and Stripe.js with the documented calls `elements`,
 * `create('payment')`, `mount`, `on` and `confirmPayment`. It does not validate requests; stripe-mock does.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const SECRET = 'whsec_of_a_test';
/** The card of Stripe's documentation that is always declined. */
export const DECLINED = '4000 0000 0000 0002';

/** Like Stripe.js: a field in the place where the form is mounted, and a confirmation by the client secret. */
const script = `(() => {
  const { origin } = new URL(document.currentScript.src);
  window.Stripe = (key) => ({
    elements: ({ clientSecret }) => ({
      clientSecret,
      create: () => {
        const handlers = {};
        return {
          on: (event, handle) => (handlers[event] = handle),
          mount: (place) => {
            const label = document.createElement('label');
            label.textContent = 'Card number';
            label.dataset.key = key;
            const field = document.createElement('input');
            field.id = 'card-of-stripe';
            field.className = 'field';
            label.append(field);
            place.append(label);
            setTimeout(() => handlers.ready());
          },
        };
      },
    }),
    confirmPayment: async ({ elements }) => {
      const body = new URLSearchParams({ secret: elements.clientSecret, card: document.getElementById('card-of-stripe').value });
      return (await fetch(origin + '/confirm', { method: 'POST', body })).json();
    },
  });
})();`;

interface Charge {
  id: string;
  amount: number;
  currency: string;
  metadata: Record<string, string>;
  state: 'open' | 'paid' | 'closed';
  back: string;
}

/** The server. `shop` is set once the shop runs. */
export class FakeStripe {
  shop = '';
  host = '';
  /** Whether its API answers 503. */
  away = false;
  private readonly charges = new Map<string, Charge>();
  private readonly server: Server = createServer((request, response) => void this.answer(request, response));

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.host = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** The settings of a shop that takes cards here, on its own page with a publishable key. */
  settings(embedded: boolean): Record<string, string> {
    return {
      'payments.stripe.key': 'sk_test_1',
      'payments.stripe.webhook_secret': SECRET,
      'payments.stripe.api_url': this.host,
      ...(embedded && {
        'payments.stripe.publishable_key': 'pk_test_1',
        'payments.stripe.script_url': `${this.host}/stripe.js`,
        'payments.stripe.origins': this.host,
      }),
    };
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url!, this.host);
    let body = '';
    for await (const part of request) body += part;
    const form = new URLSearchParams(body);
    const json = (value: unknown): void => void response.setHeader('content-type', 'application/json').setHeader('access-control-allow-origin', '*').end(JSON.stringify(value));
    const [, first, kind = '', id = '', act] = pathname.match(/^\/(v1)\/(checkout\/sessions|payment_intents)(?:\/(\w+))?(?:\/(\w+))?$/) ?? [];
    if (pathname === '/stripe.js') return void response.setHeader('content-type', 'text/javascript').end(script);
    if (pathname === '/confirm') return json(await this.confirm(form.get('secret')!, form.get('card')!));
    if (pathname.startsWith('/checkout/')) return this.checkout(request, response, this.charges.get(pathname.split('/')[2]!)!);
    if (!first) return void response.writeHead(404).end('{"error":{"type":"invalid_request_error"}}');
    if (this.away) return void response.writeHead(503).end('{"error":{"type":"api_error"}}');
    const charge = id ? this.charges.get(id)! : this.open(kind, form);
    if (act && charge.state === 'open') charge.state = 'closed';
    json(kind === 'payment_intents' ? this.intent(charge) : this.session(charge));
  }

  private open(kind: string, form: URLSearchParams): Charge {
    const id = (kind === 'payment_intents' ? 'pi_' : 'cs_') + randomUUID().replaceAll('-', '');
    const price = kind === 'payment_intents' ? '' : 'line_items[0][price_data]';
    const charge: Charge = {
      id,
      amount: Number(form.get(price ? `${price}[unit_amount]` : 'amount')) * Number(form.get('line_items[0][quantity]') ?? 1),
      currency: form.get(price ? `${price}[currency]` : 'currency')!,
      metadata: Object.fromEntries([...form].flatMap(([name, value]) => (/^metadata\[(\w+)\]$/.exec(name) ? [[/\[(\w+)\]/.exec(name)![1]!, value]] : []))),
      state: 'open',
      back: form.get('success_url') ?? '',
    };
    this.charges.set(id, charge);
    return charge;
  }

  private intent(c: Charge) {
    const status = { open: 'requires_payment_method', paid: 'succeeded', closed: 'canceled' }[c.state];
    return {
      id: c.id, object: 'payment_intent', status, amount: c.amount, amount_received: c.state === 'paid' ? c.amount : 0, currency: c.currency,
      client_secret: `${c.id}_secret_1`, metadata: c.metadata,
    };
  }

  private session(c: Charge) {
    const status = { open: 'open', paid: 'complete', closed: 'expired' }[c.state];
    return {
      id: c.id, object: 'checkout.session', status, payment_status: c.state === 'paid' ? 'paid' : 'unpaid', amount_total: c.amount, currency: c.currency,
      url: `${this.host}/checkout/${c.id}`, client_reference_id: c.metadata['payment'], payment_intent: c.state === 'paid' ? c.id.replace('cs_', 'pi_') : null,
    };
  }

  /** Handles confirmPayment of the script. */
  private async confirm(secret: string, card: string) {
    const charge = this.charges.get(secret.split('_secret_')[0]!);
    if (!charge || charge.state !== 'open') return { error: { message: 'This payment is over.' } };
    if (card === DECLINED) return { error: { message: 'Your card was declined.' } };
    charge.state = 'paid';
    await this.report('payment_intent.succeeded', this.intent(charge));
    return { paymentIntent: { status: 'succeeded' } };
  }

  /** The page of Checkout: a button that pays and leads back. */
  private async checkout(request: IncomingMessage, response: ServerResponse, charge: Charge): Promise<void> {
    if (request.method === 'GET') {
      return void response.setHeader('content-type', 'text/html').end('<!doctype html><title>Checkout</title><form method="post"><button>Pay with the test card</button></form>');
    }
    charge.state = 'paid';
    await this.report('checkout.session.completed', this.session(charge));
    response.writeHead(303, { location: charge.back }).end();
  }

  private async report(type: string, object: unknown): Promise<void> {
    const at = Math.floor(Date.now() / 1000);
    const body = JSON.stringify({ id: `evt_${randomUUID()}`, object: 'event', created: at, type, data: { object } });
    const signature = createHmac('sha256', SECRET).update(`${at}.${body}`).digest('hex');
    const answer = await fetch(`${this.shop}/webhooks/payments/stripe`, { method: 'POST', body, headers: { 'stripe-signature': `t=${at},v1=${signature}` } });
    if (!answer.ok) throw new Error(`the shop answered ${answer.status}: ${await answer.text()}`);
  }
}
