import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Hidden } from '../../components/text.tsx'
import { useRegistries } from '../../live/use-registries.ts'
import { useSession } from '../../session.ts'
import { summaryOf } from './registry-model.ts'

/** Whether there is anything to see on the page of registries; administrators may declare the first. */
export function useSeesRegistries(): boolean {
  const { registries, problem } = useRegistries()
  const administrator = useSession()?.user?.administrator === true
  return (
    administrator ||
    (registries?.length ?? 0) > 0 ||
    (registries === null && problem !== null && problem.status !== 404)
  )
}

/** `available/total` beside the way to the registries; nothing where there are none. */
export function RegistryIndicator(): ReactNode {
  const { registries, problem } = useRegistries()
  const summary = registries && summaryOf(registries)
  if (problem && !summary)
    return (
      <span className="registry-count" data-tip={`The registries cannot be read: ${problem.message}`}>
        <HealthMark need="unknown" bare word="cannot be read" />
      </span>
    )
  if (!summary) return null
  const { available, total, need } = summary
  return (
    <span className="registry-count" data-tip={`${available} of ${total} registries available`}>
      <HealthMark need={need} bare word="" />
      <span aria-hidden="true">
        {available}/{total}
      </span>
      <Hidden>
        {available} of {total} available
      </Hidden>
    </span>
  )
}
