import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

import net.sf.jsqlparser.JSQLParserException;
import net.sf.jsqlparser.parser.CCJSqlParserUtil;
import net.sourceforge.pmd.lang.LanguageProcessorRegistry;
import net.sourceforge.pmd.lang.ast.LexException;
import net.sourceforge.pmd.lang.ast.ParseException;
import net.sourceforge.pmd.lang.ast.Parser;
import net.sourceforge.pmd.lang.ast.SemanticErrorReporter;
import net.sourceforge.pmd.lang.document.FileId;
import net.sourceforge.pmd.lang.document.TextDocument;
import net.sourceforge.pmd.lang.plsql.PLSQLLanguageModule;

/**
 * Parses the files of two folders with PMD's parser of PL/SQL, and those that are a query or a change of rows with JSqlParser
 * too: all of the first folder must be understood, and none of the second, which holds planted faults. Ends with 1 if that is
 * not so.
 */
public final class CheckPlsql {
    public static void main(String[] folders) throws Exception {
        PLSQLLanguageModule language = PLSQLLanguageModule.getInstance();
        int wrong = 0;
        try (var processors = LanguageProcessorRegistry.singleton(language.createProcessor(language.newPropertyBundle()))) {
            List<Path> ours = files(folders[0]);
            List<Path> planted = files(folders[1]);
            // What is in the list and was sent as well is read once.
            Set<String> seen = new HashSet<>();
            for (Path file : ours) {
                if (!seen.add(Files.readString(file))) {
                    continue;
                }
                String fault = fault(processors, language, file);
                if (fault != null) {
                    wrong++;
                    System.out.println("FAILED: " + file + ": " + fault);
                }
            }
            for (Path file : planted) {
                if (fault(processors, language, file) == null) {
                    wrong++;
                    System.out.println("FAILED: " + file + ": its fault was not noticed");
                }
            }
            if (ours.isEmpty() || planted.isEmpty()) {
                wrong++;
                System.out.println("FAILED: there is nothing to parse in " + folders[0] + " or " + folders[1]);
            }
            System.out.println(seen.size() + " statements and blocks read, " + planted.size() + " planted faults tried, "
                + wrong + " wrong");
        }
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static List<Path> files(String folder) throws IOException {
        try (Stream<Path> all = Files.list(Path.of(folder))) {
            return all.filter(file -> file.toString().endsWith(".sql")).sorted().toList();
        }
    }

    /** What the parsers have against a file; null if nothing. */
    private static String fault(LanguageProcessorRegistry processors, PLSQLLanguageModule language, Path file)
            throws IOException {
        String text = Files.readString(file);
        Parser parser = processors.getProcessor(language).services().getParser();
        try (TextDocument document = TextDocument.readOnlyString(
                text, FileId.fromPath(file), language.getDefaultVersion())) {
            parser.parse(new Parser.ParserTask(document, SemanticErrorReporter.noop(), processors));
            // JSqlParser knows no rows of a function.
            if (text.matches("(?s)(SELECT|INSERT|UPDATE|DELETE)\\s.*") && !text.contains(" FROM TABLE(")) {
                CCJSqlParserUtil.parse(text);
            }
            return null;
        } catch (ParseException | LexException | JSQLParserException error) {
            return error.getMessage().lines().findFirst().orElse("no reason");
        }
    }
}
