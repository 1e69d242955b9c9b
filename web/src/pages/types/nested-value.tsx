import type { ReactNode } from 'react'
import { Jointed } from '../../components/name.tsx'
import { Pairs } from '../../components/pairs.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { CellValue } from '../../model/row-values.ts'
import { titleOf } from '../../model/row-values.ts'

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A list or an object of a row: its fields by name, a line per item. What is no list and no object is shown elsewhere. */
export function NestedValue({ label, value }: { label: string; value: CellValue | undefined }): ReactNode {
  if (typeof value !== 'object' || value === null) return null
  const isEmpty = Object.keys(value).length === 0
  return (
    <section>
      <h3>{label}</h3>
      {isEmpty ? (
        <p className="fine">none</p>
      ) : !Array.isArray(value) ? (
        <Pairs pairs={Object.fromEntries(Object.entries(value).map(([name, one]) => [name, textOf(one)]))} mono />
      ) : value.every(isFields) ? (
        <Items items={value} />
      ) : (
        <ul className="tags">
          {value.map((one) => (
            <li className="tag mono" key={textOf(one)}>
              <Jointed text={textOf(one)} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A table with a column for each field that any of them has. */
function Items({ items }: { items: readonly Fields[] }): ReactNode {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))]
  return (
    <div className="scroll-x">
      <table className="facts items">
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {titleOf(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={JSON.stringify(item)} className={isBad(item) ? 'bad' : ''}>
              {names.map((name) => (
                <td key={name} data-name={titleOf(name)}>
                  <span>
                    <Value name={name} value={item[name]} />
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Conditions of this name are good when True, others when False. */
const goodConditions = new Set(['Ready', 'Available', 'Upgradeable'])

/** Whether it is a condition that is not as it should be. */
const isBad = ({ type, status }: Fields): boolean =>
  typeof type === 'string' &&
  typeof status === 'string' &&
  (goodConditions.has(type) ? status !== 'True' : status !== 'False')

function Value({ name, value }: { name: string; value: unknown }): ReactNode {
  if (value === null || value === undefined || value === '') return <Missing why="nothing is there" focusable />
  return /At$/.test(name) && typeof value === 'number' ? <Age at={value} focusable /> : <Jointed text={textOf(value)} />
}
