"""Where Spark begins in a pod that `spark-submit` made: one task, or one batch of small ones."""

import sys

from icewright_spark.optimizer.application import main

sys.exit(main(sys.argv[1:]))
