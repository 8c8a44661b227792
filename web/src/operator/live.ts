import { useEffect } from 'preact/hooks';
import { stocks } from '../api/stores';
import { follow } from '../api/live';
import { SaleStatus, SaleStock } from '../documents/buyer';
import type { DeskSale } from './acts';

const POLL_MS = 3_000;

/** Follows a sale: its stock lands on the board, any other change is loaded anew. */
export function useDesk(sale: DeskSale, reload: () => Promise<void>): void {
  useEffect(() => {
    let known = sale.revision;
    const stops = [
      follow(SaleStatus, { id: sale.id }, {
        next: ({ saleStatus }) => {
          if (saleStatus.sale.revision > known) {
            known = saleStatus.sale.revision;
            void reload();
          }
          return false;
        },
        failed: () => {},
        poll: async () => {
          await reload(); // a desk that takes long to load is not given up for the next
          return POLL_MS;
        },
      }),
      follow(SaleStock, { id: sale.id }, {
        next: ({ saleStock }) => {
          for (const item of saleStock.items) stocks.put(item.id, item.stock);
          return false;
        },
        failed: () => {},
        poll: () => Promise.resolve(60_000), // the sale's own poll brings the stock too
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, [sale.id]);
}
