import fc from 'fast-check'

// Random PromQL out of its grammar, laid out in odd ways: comments with braces, three kinds of quotes, names that are
// keywords elsewhere.

const gap = fc.constantFrom('', '', '', ' ', '\n', '\t ', ' # {cluster="east"}\n', '#"\n', " # it's `\n")
const space = fc.constantFrom(' ', '\n', ' # or {a="b"}\n', '\t')
const metric = fc.constantFrom(
  'up',
  'clusterpulse_cluster_pods_total',
  'sum',
  'rate',
  'by',
  'limit',
  'default',
  'if',
  'with',
  'keep_metric_names',
  'a:b',
  '_',
  'count',
  'time',
  'step',
  'start',
  'end',
  'min_of',
)
const label = fc.constantFrom('cluster', 'node', 'job', '__name__', 'by', 'le', 'on', 'or')
const duration = fc.constantFrom('5m', '1h30m', '30s', '1d', '90')
const number = fc.constantFrom('1', '0.5', '-3', '1e3', 'Inf', 'nan', '0x1F', '.5')

const value = fc
  .array(
    fc.constantFrom(
      'a',
      'east',
      '{',
      '}',
      '"',
      "'",
      '`',
      '#',
      '\\',
      '\n',
      ' or ',
      ')',
      '=~',
      '.*',
      '|',
      'é',
      '…',
      '$1',
      '[5m]',
    ),
    { maxLength: 4 },
  )
  .map((pieces) => pieces.join(''))
const quoted = fc.tuple(value, fc.constantFrom('"', "'", '`')).map(([text, quote]) => {
  if (quote === '`') return `\`${text.replaceAll('`', '')}\``
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll(quote, `\\${quote}`)
  return quote + escaped + quote
})

const joined = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts.flatMap((part) => [gap, part])).map((pieces) => pieces.join(''))
const text = (fixed: string) => fc.constant(fixed)
const matcher = joined(label, fc.constantFrom('=', '!=', '=~', '!~'), quoted)
const braces = fc
  .tuple(fc.array(matcher, { maxLength: 3 }), fc.boolean(), gap)
  .map(([matchers, trailing, end]) => `{${matchers.join(',')}${trailing && matchers.length > 0 ? ',' : ''}${end}}`)
const labels = fc
  .array(fc.constantFrom('cluster', 'node', 'job', 'by'), { maxLength: 2 })
  .map((names) => `(${names.join(' , ')})`)

const grouped = fc
  .tuple(fc.constantFrom('sum', 'avg'), space, fc.constantFrom('by', 'without'))
  .map((pieces) => pieces.join(''))

/** An expression of PromQL and whether it is a selector that a range may follow. */
export const { promql } = fc.letrec<{ promql: string; selector: string; range: string; operand: string }>((tie) => ({
  selector: fc.oneof(metric, joined(metric, braces), braces),
  range: fc.oneof(
    joined(tie('selector'), text('['), duration, text(']')),
    fc
      .tuple(
        joined(text('('), tie('promql'), text(')'), text('['), duration, text(':')),
        fc.option(duration, { nil: '' }),
      )
      .map(([head, step]) => `${head}${step}]`),
  ),
  operand: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'promql' },
    tie('selector'),
    number,
    joined(text('('), tie('promql'), text(')')),
    joined(
      fc.constantFrom('rate', 'max_over_time', 'increase', 'absent_over_time', 'last_over_time'),
      text('('),
      tie('range'),
      text(')'),
    ),
    joined(fc.constantFrom('abs', 'absent', 'ceil', 'sort', 'timestamp'), text('('), tie('promql'), text(')')),
    joined(
      text('label_replace'),
      text('('),
      tie('promql'),
      text(','),
      quoted,
      text(','),
      quoted,
      text(','),
      quoted,
      text(','),
      quoted,
      text(')'),
    ),
    joined(fc.constantFrom('sum', 'max', 'COUNT', 'group'), text('('), tie('promql'), text(')')),
    joined(grouped, labels, text('('), tie('promql'), text(')')),
    joined(
      fc.constantFrom('sum', 'min'),
      text('('),
      tie('promql'),
      text(')'),
      fc.constantFrom('by', 'without'),
      labels,
    ),
    joined(fc.constantFrom('topk', 'quantile'), text('('), number, text(','), tie('promql'), text(')')),
    fc.tuple(tie('selector'), space, duration).map(([head, mark, offset]) => `${head}${mark}offset${mark}${offset}`),
    fc.tuple(tie('selector'), space).map(([head, mark]) => `${head}${mark}@${mark}end()`),
    joined(text('time'), text('('), text(')')),
  ),
  promql: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'promql' },
    tie('operand'),
    fc
      .tuple(tie('operand'), space, fc.constantFrom('+', '-', '*', '/', '%', '^', 'atan2'), space, tie('operand'))
      .map((pieces) => pieces.join('')),
    fc
      .tuple(tie('operand'), space, fc.constantFrom('and', 'OR', 'unless'), space, tie('operand'))
      .map((pieces) => pieces.join('')),
    fc
      .tuple(
        tie('operand'),
        space,
        fc.constantFrom('==', '!=', '>', '<=', '> bool'),
        space,
        fc.option(
          labels.map((names) => `on${names} `),
          { nil: '' },
        ),
        tie('operand'),
      )
      .map((pieces) => pieces.join('')),
    fc.tuple(fc.constantFrom('-', '+'), tie('operand')).map(([sign, operand]) => `${sign} ${operand}`),
  ),
}))
