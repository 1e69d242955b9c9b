import type { ReactNode } from 'react'
import { Link } from '../router.tsx'
import { Name } from './name.tsx'

/** The link of a table's row: what j, k and a click anywhere on the row lead to. */
export const RowLink = ({ to, children }: { to: string; children: ReactNode }): ReactNode => (
  <Link to={to} className="row-link" data-row-link="">
    {typeof children === 'string' ? <Name text={children} /> : children}
  </Link>
)
