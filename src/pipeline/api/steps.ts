import type { HistorySpan, RangeAnswer, Series } from '#history'

/*
 * A round does not begin on the millisecond. Where a step of a chart is as long as the interval, a step now and then has no sample
 * although no round is missing: its neighbours hold one at their far ends. So that this does not look like a hole, the store is asked
 * in halves of such a step. How many halves in a row are empty tells the time between two samples: less than two intervals is no hole,
 * and the value before it held.
 */

/** @returns the step to ask the store for, ms; half of the step where a step is one or nearly two intervals long */
export function askedStep(stepMs: number, intervalMs: number): number {
  const half = stepMs / 2
  return stepMs >= intervalMs && stepMs < 2 * intervalMs && Number.isSafeInteger(half) ? half : stepMs
}

/**
 * Puts halves together to steps again: the mean of what is known of both, or the value before where no round is missing.
 * @param answer in halves, beginning with a whole step
 * @param lost times that are named as lost, ms: no value holds there
 */
export function wholeSteps(answer: RangeAnswer, intervalMs: number, lost: readonly HistorySpan[]): RangeAnswer {
  const { start, stepMs: halfMs, points } = answer
  const most = Math.ceil((2 * intervalMs) / halfMs) - 1 // so many empty halves take less than two intervals
  const isLost = (half: number): boolean =>
    lost.some(({ from, to }) => from < start + (half + 2) * halfMs && to >= start + half * halfMs)
  const joined = ({ values, ...series }: Series): Series => {
    const steps: (number | null)[] = []
    let before = -1 // the last half that holds something
    for (let half = 0; half < points; half += 2) {
      const [left = null, right = null] = [values[half], values[half + 1]]
      if (left === null && right === null) {
        const next = nextKnown(values, half + 2, before + most + 2)
        const holds = before >= 0 && next - before - 1 <= most && !isLost(half)
        steps.push(holds ? (values[before] ?? null) : null)
        continue
      }
      steps.push(left === null ? right : right === null ? left : (left + right) / 2)
      before = right === null ? half : half + 1
    }
    return { ...series, values: steps }
  }
  return { start, stepMs: 2 * halfMs, points: Math.ceil(points / 2), series: answer.series.map(joined) }
}

/** @returns the first half from `from` on that holds something; infinity where none does before `end` */
function nextKnown(values: Series['values'], from: number, end: number): number {
  for (let half = from; half < Math.min(end, values.length); half++) if (values[half] !== null) return half
  return Number.POSITIVE_INFINITY
}
