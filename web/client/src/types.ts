/** Types of the entities, derived from the documents. */
import type { ChallengeParts, FailureParts } from './documents/failure.ts';
import type { OrderParts, PayOrder } from './documents/order.ts';
import type { MoneyParts } from './documents/money.ts';
import type { BoughtParts, LineParts, TaskParts } from './documents/purchase.ts';
import type { TicketParts } from './documents/queue.ts';
import type { CardParts, PublicSaleParts, SaleParts, StockParts } from './documents/sale.ts';
import type { CreateCaptcha } from './documents/server.ts';
import type { ResultOf, VariablesOf } from './operation.ts';

export type Challenge = ResultOf<typeof ChallengeParts>;
export type Failure = ResultOf<typeof FailureParts>;
export type Money = ResultOf<typeof MoneyParts>;
export type Stock = ResultOf<typeof StockParts>;
export type Card = ResultOf<typeof CardParts>;
export type Sale = ResultOf<typeof SaleParts>;
export type PublicSale = ResultOf<typeof PublicSaleParts>;
export type Item = Sale['items'][number];
export type Viewer = NonNullable<Sale['viewer']>;
export type Entry = NonNullable<Viewer['waitlistEntry']>;
export type Task = ResultOf<typeof TaskParts>;
export type TaskPosition = NonNullable<ResultOf<typeof LineParts>['queue']>;
export type Ticket = ResultOf<typeof TicketParts>;
/** An order as the page of a sale shows it. */
export type Bought = ResultOf<typeof BoughtParts>;
export type Order = ResultOf<typeof OrderParts>;
export type PaymentOption = Order['paymentOptions'][number];
export type Payment = NonNullable<NonNullable<ResultOf<typeof PayOrder>['payOrder']>['payment']>;
export type Phase = Sale['phase'];
export type Action = Viewer['action'];
export type StockLevel = Stock['level'];
export type OrderStatus = Order['status'];
export type ErrorCode = Failure['code'];
export type CaptchaKind = Challenge['kind'];
export type CaptchaPurpose = VariablesOf<typeof CreateCaptcha>['input']['purpose'];
