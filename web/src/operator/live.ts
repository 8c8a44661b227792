import { useEffect } from 'preact/hooks';
import { stocks } from '../api/stores';
import { follow } from '../api/client';
import { SaleStatus, SaleStock } from '@seckill/client/documents/sale';
import type { AdminSale } from './acts';

const POLL_MS = 3_000;

/** Subscribes to a sale: keeps its stock, and reloads it after any other change. */
export function useAdminSale(sale: AdminSale, reload: () => Promise<void>): void {
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
          await reload(); // a slow load is not aborted by the next poll
          return POLL_MS;
        },
      }),
      follow(SaleStock, { id: sale.id }, {
        next: ({ saleStock }) => {
          for (const item of saleStock.items) stocks.put(item.id, item.stock);
          return false;
        },
        failed: () => {},
        poll: () => Promise.resolve(60_000), // the poll of the sale includes the stock
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, [sale.id]);
}
