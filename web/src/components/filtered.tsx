import { IconFilter } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import type { ClusterView } from '../contract.ts'
import { Link, whyPath } from '../router.tsx'
import { Hidden } from './text.tsx'

const tip = 'You see a part of this cluster. Counts and sums are over what you may see, and health speaks of that part.'

/** Beside the name of a cluster that is shown in part. */
export const FilteredSign = (): ReactNode => (
  <span className="filtered-sign" data-tip={tip}>
    <IconFilter size={13} aria-hidden="true" />
    <Hidden>filtered view</Hidden>
  </span>
)

/** The same in the heading of its pages, with the way to the reason. */
export const FilteredTag = ({ cluster }: { cluster: ClusterView }): ReactNode => (
  <Link className="tag filtered-tag" to={whyPath({ cluster: cluster.name })} data-tip={tip}>
    <IconFilter size={12} aria-hidden="true" /> filtered view<Hidden>: {tip} Why?</Hidden>
  </Link>
)
