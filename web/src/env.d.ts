/** Features: true when the server's schema serves all that the documents file of the name asks for. */
declare const __HAS_BUYER__: boolean;
declare const __HAS_ORDERS__: boolean;
declare const __HAS_PAYMENT__: boolean;
declare const __HAS_WAITLIST__: boolean;
declare const __HAS_QUEUE__: boolean;
declare const __HAS_OPERATOR__: boolean;
declare const __HAS_DESK__: boolean;
declare const __HAS_LETTERS__: boolean;
