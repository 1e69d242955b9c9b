import type { ReactNode } from 'react'
import { LoadMeter } from '../../components/meter.tsx'
import { Missing, NotShown } from '../../components/text.tsx'
import type { ColumnView, TableRowView } from '../../contract.ts'
import { pastUsage } from '../../model/row-values.ts'
import { absentFor, type RowsOn, ValueText } from './parts.tsx'

type What = NonNullable<ColumnView['amount']>['what']

interface AmountsProps {
  readonly row: Pick<TableRowView, 'values'>
  readonly columns: readonly ColumnView[]
  /** how the kind stands on the cluster; undefined: not known */
  readonly on: RowsOn | undefined
}

const columnFor = (columns: readonly ColumnView[], of: string, what: What): ColumnView | undefined =>
  columns.find(({ amount }) => amount?.of === of && amount.what === what)

/** The share of a resource that is used, over the share that is requested; as the hub has it, the latter alone where use is not read any more. */
export function ShareMeter({ of, row, columns, on }: AmountsProps & { readonly of: string }): ReactNode {
  const amount = (what: What): number | null => {
    const value = row.values[columnFor(columns, of, what)?.name ?? '']
    return typeof value === 'number' ? value : null
  }
  const amounts = {
    capacity: amount('capacity'),
    allocatable: amount('allocatable'),
    requested: amount('requested'),
    used: on && pastUsage(on) ? null : amount('used'),
  }
  return <LoadMeter what={of === 'Memory' ? 'Memory' : 'CPU'} amounts={amounts} hidden={on?.filtered ?? false} />
}

const headings = { capacity: 'Capacity', allocatable: 'Allocatable', requested: 'Requested', used: 'Used' } as const
const parts = Object.keys(headings) as (keyof typeof headings)[]

/** Every resource of a row with its amounts side by side. */
export function AmountsTable({ row, columns, on }: AmountsProps): ReactNode {
  const resources = [...new Set(columns.flatMap(({ amount }) => (amount ? [amount.of] : [])))]
  if (resources.length === 0) return null
  const cell = (of: string, what: What): ReactNode => {
    const column = columnFor(columns, of, what)
    if (!column) return <Missing why="not counted for this resource" />
    const value = row.values[column.name]
    if (typeof value === 'number') return <ValueText value={value} column={column} on={on} />
    if (absentFor(column, on) === 'hidden') return <NotShown what={column.label} focusable />
    return <Missing why={whyMissing[what]} focusable />
  }
  return (
    <section>
      <h3>Resources</h3>
      <div className="scroll-x">
        <table className="facts">
          <thead>
            <tr>
              <th scope="col">Resource</th>
              {parts.map((part) => (
                <th scope="col" key={part}>
                  {headings[part]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {resources.map((of) => (
              <tr key={of}>
                <th scope="row">{of}</th>
                {parts.map((part) => (
                  <td key={part}>{cell(of, part)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

const whyMissing: Readonly<Record<What, string>> = {
  share: 'it was not read',
  used: 'metrics.k8s.io is not served or did not measure it',
  requested: 'the pods of this cluster could not be read',
  allocatable: 'the node did not tell it',
  capacity: 'the node did not tell it',
}
