/** A small table. Where the page is narrow, each row is a card with the titles of its columns. */
import type { ReactNode } from "react";

export type TableColumn<T> = {
  readonly title: string;
  readonly cell: (row: T) => ReactNode;
  /** `number`: aligned at the right. `long`: text that wraps and takes the room that others leave. */
  readonly kind?: "number" | "long";
};

type TableProps<T> = {
  readonly caption?: ReactNode;
  readonly columns: readonly TableColumn<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string | number;
};

export function Table<T>({ caption, columns, rows, keyOf }: TableProps<T>) {
  return (
    <table className="table">
      {caption !== undefined && <caption>{caption}</caption>}
      <thead>
        <tr>
          {columns.map(({ title, kind }) => (
            <th key={title} scope="col" className={kind}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, kind }) => (
              <td key={title} className={kind} data-title={title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
