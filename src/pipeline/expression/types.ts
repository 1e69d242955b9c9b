/** What expressions compute with. Numbers are always finite: what is not (a division by zero, an overflow) is null. */
export type Value = string | number | boolean | null

/** What is known of a value before it is computed; `any` where it depends. null may always come instead. */
export type Kind = 'string' | 'number' | 'boolean' | 'null' | 'any'

/** Something wrong with the text of an expression. Places are UTF-16 offsets into it, `to` exclusive. */
export interface Problem {
  readonly severity: 'error' | 'warning'
  /** stable, snake case, such as `unknown_function`, `unknown_name`, `wrong_argument_count`, `unterminated_text` */
  readonly code: string
  /** a sentence with the cause, without the place */
  readonly message: string
  readonly from: number
  readonly to: number
  /** what was probably meant, such as a name of nearly the same letters */
  readonly suggestion?: string
}

/** What an expression may use, and its bounds. */
export interface CompileOptions {
  /** the names there are, in the order of the slots, each with what is known of its values; others are errors */
  readonly names: readonly { readonly name: string; readonly kind: Kind }[]
  /** longest text, UTF-16 units; default 16 384 */
  readonly maxLength?: number
}

/** Bounds of one evaluation: beyond them it is null, and `EvaluationContext.exceeded` is told. */
export interface EvaluationContext {
  /** ms since the Unix epoch, for now() and age() */
  readonly now: number
  /** an evaluation cost more than it may (see docs/spec/expressions.md) */
  readonly exceeded?: () => void
}

/** A compiled expression. Pure but for now(): the same slots and the same `now` give the same value, everywhere. */
export interface Expression {
  readonly text: string
  /** names it reads, each once, in order of appearance */
  readonly references: readonly string[]
  /** what it gives, as far as that is known */
  readonly kind: Kind
  /** it reads the clock */
  readonly isTimeDependent: boolean
  /** @param slots values by the place of their name in `CompileOptions.names`; missing counts as null */
  evaluate(slots: readonly Value[], context: EvaluationContext): Value
}

/** `expression` is there unless a problem is an error. */
export interface Compilation {
  readonly expression: Expression | undefined
  readonly problems: readonly Problem[]
}

/** One function of the language, for the reference page, completion and `clusterpulse expression --functions`. */
export interface FunctionDescription {
  readonly name: string
  /** such as `round(x [, decimals])` */
  readonly signature: string
  readonly description: string
  readonly example: { readonly text: string; readonly result: Value }
}
