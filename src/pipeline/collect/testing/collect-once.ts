import type { KubeClient } from '#kube'
import { systemClock } from '#model'
import { poll } from '../poll.ts'
import type { Collector, Fold } from '../types.ts'

/** What one collector makes of a cluster. @throws what it cannot do without */
export async function collectOnce(
  collector: Collector,
  kube: KubeClient,
  onMalformed: (text: string) => void = () => undefined,
): Promise<ReturnType<Fold['parts']>> {
  const fold = collector.open({ endpoint: kube.endpoint, now: 0, onMalformed })
  const faults: unknown[] = []
  const { signal } = new AbortController()
  for (const read of collector.reads) {
    const take = (event: Parameters<Fold['take']>[1]) => {
      try {
        fold.take(read, event)
      } catch (fault) {
        faults.push(fault)
      }
      return faults.length === 0
    }
    await poll(read, { kube, take, signal, clock: systemClock, random: () => 0 })
  }
  if (faults.length > 0) throw faults[0]
  return fold.parts(0)
}
