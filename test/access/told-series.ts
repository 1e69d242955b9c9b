import { type ClusterState, metricPrefix } from '#model'

type Series = Readonly<Record<string, string>>

/** Whether the values of an aggregation are there for whoever asks. */
export type Kept = (state: ClusterState, source: string, aggregation: string) => boolean

const noLabel = ''

/** What a backend of these clusters holds, by its labels: one series of each cluster, and its aggregations. */
export function seriesOf(clusters: readonly ClusterState[], kept: Kept): readonly Series[] {
  return clusters.flatMap((state) => [
    { __name__: `${metricPrefix.cluster}nodes_total`, cluster: state.name },
    ...[...state.tables].flatMap(([source, { aggregations }]) =>
      Object.keys(aggregations)
        .filter((name) => kept(state, source, name))
        .map((name) => ({ __name__: metricPrefix.custom + name, cluster: state.name, source })),
    ),
  ])
}

/** What a list of series, of labels or of the values of one answers over these, slowly and by the letter of the selectors. */
export function listOf(path: string, selectors: readonly string[], all: readonly Series[]): readonly unknown[] {
  const found = all.filter((series) => selectors.some((selector) => matches(selector, series)))
  if (path === 'series') return found
  const label = /^label\/(.*)\/values$/.exec(path)?.[1]
  const texts = label ? found.flatMap((series) => series[label] ?? []) : found.flatMap((series) => Object.keys(series))
  return [...new Set(texts)]
}

function matches(selector: string, series: Series): boolean {
  const [, metric = '', braces = ''] = /^\s*([\w:]*)\s*(?:\{(.*)\})?\s*$/s.exec(selector) ?? []
  if (metric !== '' && series.__name__ !== metric) return false
  return [...braces.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")/g)].every(([, label = '', sign, quoted]) => {
    const [value, text] = [series[label] ?? noLabel, JSON.parse(quoted ?? '""') as string]
    const fits = sign?.endsWith('~') ? new RegExp(`^(?:${text})$`, 's').test(value) : value === text
    return sign?.startsWith('!') ? !fits : fits
  })
}
