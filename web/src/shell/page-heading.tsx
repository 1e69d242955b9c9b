import { type ReactNode, useEffect, useRef } from 'react'
import { usePlace } from '../router.tsx'

let firstView = true
let lastPage = ''

/** The one h1 of a view. It takes the focus when the view is entered, so that keyboard and screen reader begin there. */
export function PageHeading({
  title,
  children,
  after,
}: {
  title: string
  children: ReactNode
  after?: ReactNode
}): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null)
  const { path } = usePlace()
  const page = path.split('/').slice(0, 3).join('/')
  useEffect(() => {
    document.title = `${title} · ClusterPulse`
  }, [title])
  useEffect(() => {
    if (!firstView && page !== lastPage && !document.querySelector('dialog[open]'))
      heading.current?.focus({ preventScroll: true })
    firstView = false
    lastPage = page
  }, [page])
  return (
    <div className="heading">
      <h1 ref={heading} tabIndex={-1}>
        {children}
      </h1>
      {after}
    </div>
  )
}
