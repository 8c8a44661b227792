/** Types of the entities, derived from the documents. */
import type { ChallengeParts, FailureParts } from '../documents/account';
import type { CardParts, LineParts, MoneyParts, SaleParts, StockParts, TaskParts } from '../documents/buyer';
import type { OrderParts } from '../documents/orders';
import type { PayOrder } from '../documents/payment';
import type { ResultOf } from './tada';
import type { graphql } from './tada';

export type Challenge = ResultOf<typeof ChallengeParts>;
export type Failure = ResultOf<typeof FailureParts>;
export type Money = ResultOf<typeof MoneyParts>;
export type Stock = ResultOf<typeof StockParts>;
export type Card = ResultOf<typeof CardParts>;
export type Sale = ResultOf<typeof SaleParts>;
export type Item = Sale['items'][number];
export type Viewer = NonNullable<Sale['viewer']>;
export type Entry = NonNullable<Viewer['waitlistEntry']>;
export type Task = ResultOf<typeof TaskParts>;
export type Line = NonNullable<ResultOf<typeof LineParts>['queue']>;
export type Order = ResultOf<typeof OrderParts>;
export type PaymentOption = Order['paymentOptions'][number];
export type Payment = NonNullable<NonNullable<ResultOf<typeof PayOrder>['payOrder']>['payment']>;
export type Phase = ReturnType<typeof graphql.scalar<'SalePhase'>>;
export type Action = ReturnType<typeof graphql.scalar<'PurchaseAction'>>;
export type StockLevel = Stock['level'];
export type OrderStatus = Order['status'];
export type ErrorCode = Failure['code'];
export type CaptchaKind = Challenge['kind'];
export type CaptchaPurpose = ReturnType<typeof graphql.scalar<'CaptchaPurpose'>>;
