"""From records to counts: files and frames of any size become a `Table` of (S, U).

file_formats    the format of a file by its name
record_files    the one place that opens CSV, Parquet or Arrow
sources         what every open file of records offers
csv_source      CSV and TSV files
arrow_arrays    NumPy arrays and texts to Arrow and back
plain_csv       CSV records by a loop in C
csv_blocks      CSV text in blocks of whole records
encodings       the encoding of a text file, recognised and converted
arrow_sources   Parquet and Arrow files
arrow_messages  how large the batches of an Arrow file become
parquet_pages   how large the pages of a Parquet file become
standard_input  the standard input
frame_columns   frames of pandas, polars, pyarrow and others
limits          sizes beyond which input is refused
schema          the columns and labels of S and U
label_hints     labels that look alike, or that stand for missing values
combinations    Arrow batches → counts of combinations of labels
tally           frames and batches → counts
table           counts with their schema
parts           some columns of U, for someone who knows these
read_table      a file → a table
"""
