import { useEffect, useState } from 'react'
import type { ApiProblem, SourceTrialView } from '../../contract.ts'
import { useHub } from '../../live/hooks.ts'
import { problemOf } from '../../live/problem.ts'

export interface Tried {
  readonly manifest: string
  readonly cluster: string
  readonly trial: SourceTrialView
}

export interface Trying {
  /** the last answer, of whichever text it was */
  readonly tried: Tried | null
  /** the last answer in which rows were read: it stays while the text has a mistake */
  readonly lastRead: Tried | null
  readonly problem: ApiProblem | null
  readonly isBusy: boolean
}

/** typing pauses for so long before the hub is asked; longer where a cluster is read each time */
const pauseMs = { check: 350, read: 700 }

/** Asks the hub what a declaration would give, whenever typing pauses. Nothing is stored there. */
export function useTrial(manifest: string, cluster: string): [trying: Trying, again: () => void] {
  const { client } = useHub()
  const [trying, setTrying] = useState<Trying>({ tried: null, lastRead: null, problem: null, isBusy: false })
  const [attempt, setAttempt] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt asks again
  useEffect(() => {
    if (manifest.trim() === '') {
      setTrying({ tried: null, lastRead: null, problem: null, isBusy: false })
      return
    }
    const asking = new AbortController()
    setTrying((before) => ({ ...before, isBusy: true }))
    const timer = setTimeout(
      () => {
        client.trySource({ manifest, ...(cluster !== '' && { cluster }) }, asking.signal).then(
          (trial) =>
            setTrying((before) => {
              const tried = { manifest, cluster, trial }
              const lastRead = trial.result ? tried : before.lastRead?.cluster === cluster ? before.lastRead : null
              return { tried, lastRead, problem: null, isBusy: false }
            }),
          (cause: unknown) => {
            if (!asking.signal.aborted) setTrying((before) => ({ ...before, problem: problemOf(cause), isBusy: false }))
          },
        )
      },
      cluster === '' ? pauseMs.check : pauseMs.read,
    )
    return () => {
      clearTimeout(timer)
      asking.abort()
    }
  }, [client, manifest, cluster, attempt])
  return [trying, () => setAttempt((count) => count + 1)]
}
