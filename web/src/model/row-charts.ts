import type { AggregationInfoView } from '../contract.ts'
import type { ChartPlan, Line, Stroke } from '../history/picture.ts'
import type { Unit as ChartUnit } from '../history/units.ts'
import { titleOf } from './row-values.ts'

const strokes: readonly Stroke[] = ['first', 'second', 'third', 'fourth']
const unitTitle: Readonly<Record<ChartUnit, string>> = {
  count: 'Counts',
  bytes: 'Sizes',
  cores: 'CPU',
  percent: 'Percentages',
  seconds: 'Durations',
  milliseconds: 'Response times',
  amount: 'Amounts',
  flag: 'Flags',
}

function chartUnit({ unit, function: kind }: AggregationInfoView): ChartUnit {
  if (kind === 'count' || kind === 'distinct') return 'count'
  return unit === 'bytes' || unit === 'cores' || unit === 'percent' || unit === 'seconds' ? unit : 'amount'
}

/** Sums are of another size than what they are made of: they share no axis with it. */
const isTotal = ({ function: kind }: AggregationInfoView) => kind === 'count' || kind === 'sum' || kind === 'distinct'

/** The charts of what a source keeps over time: alike beside alike, at most four lines on each. */
export function rowCharts(aggregations: readonly AggregationInfoView[]): ChartPlan[] {
  const groups = new Map<string, { unit: ChartUnit; title: string; of: AggregationInfoView[] }>()
  for (const each of aggregations) {
    if (!each.hasHistory) continue
    const unit = chartUnit(each)
    const title = isTotal(each) ? unitTitle[unit] : titleOf(each.field ?? each.name, each.unit)
    const key = `${unit} ${isTotal(each)} ${isTotal(each) ? '' : each.field}`
    const group = groups.get(key) ?? { unit, title, of: [] }
    group.of.push(each)
    groups.set(key, group)
  }
  return [...groups].flatMap(([key, { unit, title, of }]) =>
    Array.from({ length: Math.ceil(of.length / strokes.length) }, (_, part): ChartPlan => {
      const lines = of.slice(part * strokes.length, (part + 1) * strokes.length).map(
        ({ name, unit: own }, index): Line => ({
          metric: name,
          word: titleOf(name, own).toLowerCase(),
          stroke: strokes[index] ?? 'first',
        }),
      )
      const only = lines.length === 1 && of.length === 1 ? of[0] : undefined
      return {
        id: `${key} ${part}`,
        title: only ? titleOf(only.name, only.unit) : part === 0 ? title : `${title}, ${part + 1}`,
        unit,
        lines,
      }
    }),
  )
}
