/** An attribute of an object could not be had; the sentence holds nothing of the object's values. Never leaves this module. */
export class ExtractionFault extends Error {
  override readonly name = 'ExtractionFault'
}

/** An expression was stopped. */
export class BudgetFault extends ExtractionFault {
  /** it took too long, which it may not another time, as the machine may have been slow; else it takes too many steps, always */
  readonly isLate: boolean

  constructor(message: string, isLate: boolean) {
    super(message)
    this.isLate = isLate
  }
}
